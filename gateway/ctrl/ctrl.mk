# SPDX-License-Identifier: Apache-2.0
# The gateway's control thread: gateway/ctrl/*.c, part of roceway-gateway; and the agent alone, for tests/unit/ctrl_agent.py.
GW_SRC  += $(wildcard gateway/ctrl/*.c)
GW_LIBS += $(shell $(PC) --libs libcurl)
$(BUILD)/tests/ctrl_agent: $(call obj,tests/unit/ctrl/agent_main.c gateway/ctrl/agent.c gateway/ctrl/agent_http.c gateway/ctrl/keep.c)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $(filter %.o,$^) $(LDFLAGS_ALL) $(shell $(PC) --libs libcurl jansson) -lpthread
$(BUILD)/tests/unit/test_ctrl_document: $(call obj,gateway/ctrl/document.c gateway/ctrl/keep.c)
