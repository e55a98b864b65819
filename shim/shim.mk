# SPDX-License-Identifier: Apache-2.0
# For hosts: librwyredirect.so, librwyverbs.so, roceway-run and roceway-host-agent. They run inside other people's programs, so they are built for every amd64 processor
# and but for the agent link nothing but libc and the library that they stand before.
SHIM_ARCH   := -march=x86-64
SHIM_COMMON := shim/policy.c shim/talk.c shim/host.c proxy/ask.c proxy/trailer.c
# A library has all that it names; with the sanitizers the program has some of it.
SHIM_DEFS   := $(if $(SAN),,-Wl,-z,defs)
shim_obj = $(patsubst %.c,$(BUILD)/pic/%.o,$(1))
SHIM_LIBS   := $(BUILD)/lib/librwyredirect.so $(BUILD)/lib/librwyverbs.so
all: $(BUILD)/bin/roceway-run $(SHIM_LIBS)

$(BUILD)/pic/%.o: %.c
	@mkdir -p $(@D)
	@echo '  CC    $< (for hosts)'
	$(Q)$(CC) $(CPPFLAGS_ALL) $(filter-out $(ARCH),$(CFLAGS_ALL)) $(SHIM_ARCH) -fPIC -fvisibility=default -MMD -MP -c $< -o $@
$(BUILD)/lib/librwyredirect.so: $(call shim_obj,shim/redirect.c shim/table.c $(SHIM_COMMON)) shim/redirect.map
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -shared -o $@ $(filter %.o,$^) -Wl,--version-script=shim/redirect.map -Wl,-soname,librwyredirect.so $(SHIM_DEFS) $(LDFLAGS_ALL)
# It depends on libibverbs even if it names nothing of it: whoever opens it in place of that finds the rest there.
$(BUILD)/lib/librwyverbs.so: $(call shim_obj,shim/verbs.c shim/table.c $(SHIM_COMMON)) shim/verbs.map
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -shared -o $@ $(filter %.o,$^) -Wl,--version-script=shim/verbs.map -Wl,-soname,librwyverbs.so $(SHIM_DEFS) $(LDFLAGS_ALL) -Wl,--no-as-needed -libverbs
$(BUILD)/bin/roceway-run: $(call shim_obj,shim/run.c $(SHIM_COMMON))
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL)
# The agent: it is a program of its own and runs in nobody else's.
HAGENT_SRC := $(wildcard shim/agent/*.c) $(SHIM_COMMON) base/http.c base/log.c base/notify.c base/random.c
all: $(BUILD)/bin/roceway-host-agent
$(BUILD)/bin/roceway-host-agent: $(call shim_obj,$(HAGENT_SRC))
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(shell $(PC) --libs libcurl jansson)
-include $(wildcard $(BUILD)/pic/*/*.d $(BUILD)/pic/*/*/*.d)
$(BUILD)/tests/unit/test_shim_policy: $(call obj,shim/policy.c)
$(BUILD)/tests/unit/test_shim_talk: $(call obj,shim/policy.c shim/talk.c)
$(BUILD)/tests/unit/test_shim_host: $(call obj,shim/host.c shim/policy.c)
# In build/obj the gateway would seem to call it in place of librdmacm (tests/lint).
$(BUILD)/tests/unit/test_shim_redirect: $(call shim_obj,shim/redirect.c shim/table.c shim/policy.c)
$(BUILD)/tests/unit/test_shim_verbs: $(call shim_obj,shim/verbs.c shim/table.c shim/policy.c)
