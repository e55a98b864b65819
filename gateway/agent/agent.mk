# SPDX-License-Identifier: Apache-2.0
# The control center's thread: gateway/agent/*.c, part of roceway-gateway; and the agent alone, for tests/component/ctrl_agent.py.
GW_LIBS += $(shell $(PC) --libs libcurl)
$(BUILD)/tests/ctrl_agent: $(call obj,tests/component/agent/main.c gateway/agent/agent.c gateway/agent/answer.c gateway/agent/state.c gateway/agent/request.c gateway/agent/keep.c base/http.c base/random.c)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $(filter %.o,$^) $(LDFLAGS_ALL) $(shell $(PC) --libs libcurl jansson) -lpthread
$(BUILD)/tests/unit/test_ctrl_pair: $(call obj,gateway/agent/pair.c)
$(BUILD)/tests/unit/test_ctrl_document: $(call obj,gateway/agent/document.c gateway/agent/document_fields.c gateway/agent/document_paths.c gateway/agent/keep.c)
