/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes: functions return 0 or one of these negative values. */
#ifndef RWY_ERR_H
#define RWY_ERR_H

#define RWY_ENOMEM     (-12) /* memory is short, or a configured bound is reached */
#define RWY_EINVAL     (-22) /* an argument that is never valid */
#define RWY_EAGAIN     (-11) /* not now: back-pressure; the caller keeps ownership */
#define RWY_EEXIST     (-17)
#define RWY_ENOENT     (-2)
#define RWY_EMALFORMED (-74) /* malformed bytes from outside: count and drop */

#define RWY_MUST_CHECK __attribute__((warn_unused_result))

/* Marks the impossible case after a switch over one of our enums. The switch has no default, so a
 * new enumerator is a compile error. */
#define rwy_unreachable() rwy_unreachable_at(__FILE__, __LINE__)
_Noreturn static inline void rwy_unreachable_at(const char *file, int line)
{
	__builtin_trap();
}

#endif
