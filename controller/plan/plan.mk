# SPDX-License-Identifier: Apache-2.0
# The planner and the providers: build/lib/librwyplan.a, linked by the controller and by tests/unit/test_plan*, test_provider*.
# No contraction of multiply and add: two replicas on different processors must compute identical bits.
PLAN_SRC := $(wildcard controller/plan/*.c)
PROVIDER_SRC := $(wildcard controller/provider/*.c)
PLAN_LIB := $(BUILD)/lib/librwyplan.a
PLAN_LIBS = -ljansson $(shell $(PC) --libs libcurl libnl-3.0 libnl-route-3.0) -lm
$(BUILD)/obj/controller/plan/%.o: controller/plan/%.c
	@mkdir -p $(@D)
	@echo '  CC    $<'
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -ffp-contract=off -MMD -MP -c $< -o $@
$(BUILD)/obj/controller/provider/%.o: controller/provider/%.c
	@mkdir -p $(@D)
	@echo '  CC    $<'
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(patsubst -I%,-isystem %,$(shell $(PC) --cflags libnl-3.0 libnl-route-3.0)) -MMD -MP -c $< -o $@
$(PLAN_LIB): $(call obj,$(PLAN_SRC) $(PROVIDER_SRC)) ; $(archive)
$(filter $(BUILD)/tests/unit/test_plan% $(BUILD)/tests/unit/test_provider%,$(UNIT_BIN)): $(PLAN_LIB)
core: $(PLAN_LIB)
PROVIDER_TEST := $(filter $(BUILD)/tests/unit/test_provider%,$(UNIT_BIN))
$(PROVIDER_TEST): $(BASE_LIB)
$(PROVIDER_TEST): LDFLAGS_ALL += $(shell $(PC) --libs libcurl libnl-3.0 libnl-route-3.0)
$(BUILD)/tests/bench/bench_control: LDFLAGS_ALL += $(shell $(PC) --libs gnutls)
$(BUILD)/tests/fuzz/fuzz_provider: $(PLAN_LIB)
$(BUILD)/tests/fuzz/fuzz_provider: LDFLAGS_ALL += -ljansson
FUZZ_LIBS_provider = $(BUILD)/fuzz/lib/librwyplan.a -ljansson
