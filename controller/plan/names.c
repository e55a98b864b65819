/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the planner's enumerations and their sentences, from the lists in the headers. */
#include <string.h>

#include "controller/plan/job.h"

#define NAME(e, w, s) w,
#define TEXT(e, w, s) s,

static const char *const carrier_names[] = {PLAN_CARRIERS(NAME)};
static const char *const class_names[] = {PLAN_CLASSES(NAME)};
static const char *const limit_names[] = {PLAN_LIMITS(NAME)};
static const char *const limit_texts[] = {PLAN_LIMITS(TEXT)};
static const char *const rule_names[] = {PLAN_RULES(NAME)};
static const char *const rule_texts[] = {PLAN_RULES(TEXT)};
static const char *const shape_names[] = {PLAN_SHAPES(NAME)};
static const char *const shape_texts[] = {PLAN_SHAPES(TEXT)};
static const char *const place_texts[] = {PLAN_PLACE_FAILS(TEXT)};
static const char *const job_texts[] = {PLAN_JOB_FAILS(TEXT)};

#define WORD(list, i) ((unsigned)(i) < sizeof(list) / sizeof(list[0]) ? list[i] : "?")

const char *plan_carrier_name(enum plan_carrier c)
{
	return WORD(carrier_names, c);
}

const char *plan_class_name(enum plan_class c)
{
	return WORD(class_names, c);
}

enum plan_carrier plan_carrier_find(const char *word)
{
	unsigned i = 0;

	while (i < PLAN_CARRIER_COUNT && strcmp(carrier_names[i], word) != 0)
		i++;
	return (enum plan_carrier)i;
}

const char *plan_limit_name(enum plan_limit l)
{
	return WORD(limit_names, l);
}

const char *plan_limit_text(enum plan_limit l)
{
	return WORD(limit_texts, l);
}

const char *plan_rule_name(enum plan_rule r)
{
	return WORD(rule_names, r);
}

const char *plan_rule_text(enum plan_rule r)
{
	return WORD(rule_texts, r);
}

const char *plan_shape_name(enum plan_shape s)
{
	return WORD(shape_names, s);
}

const char *plan_shape_text(const char *name)
{
	for (unsigned i = 0; i < PLAN_SHAPE_COUNT; i++)
		if (strcmp(shape_names[i], name) == 0)
			return shape_texts[i];
	return "";
}

const char *plan_place_fail_text(enum plan_place_fail f)
{
	return WORD(place_texts, f);
}

const char *plan_job_fail_text(enum plan_job_fail f)
{
	return WORD(job_texts, f);
}
