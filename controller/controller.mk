# SPDX-License-Identifier: Apache-2.0
# The control center's program: controller/*.c and {conf,state,server,fleet,job}/*.c -> build/bin/roceway-controller. Its other parts
# are libraries of their own:
#   controller/model/*.c -> build/lib/librwymodel.a, controller/store/*.c -> build/lib/librwystore.a, plan/plan.mk
CTLR_SRC   := $(wildcard controller/*.c $(patsubst %,controller/%/*.c,conf state server fleet job))
CTLR_PKGS  := libmicrohttpd gnutls jansson libcurl sqlite3 yaml-0.1 libseccomp
CTLR_LIBS   = $(shell $(PC) --libs $(CTLR_PKGS)) -lpthread
MODEL_LIB  := $(BUILD)/lib/librwymodel.a
STORE_LIB  := $(BUILD)/lib/librwystore.a
# Without its main: for tests and benchmarks.
CTLR_LIB   := $(BUILD)/lib/librwycontroller.a

$(MODEL_LIB): $(call obj,$(wildcard controller/model/*.c)) ; $(archive)
$(STORE_LIB): $(call obj,$(wildcard controller/store/*.c)) ; $(archive)
# The web page is part of the program.
PAGE_OBJ   := $(BUILD)/obj/controller/page_files.o
$(BUILD)/gen/page_files.c: controller/embed.py $(shell find controller/page -type f)
	@mkdir -p $(@D)
	$(Q)/usr/bin/python3 controller/embed.py controller/page > $@
$(PAGE_OBJ): $(BUILD)/gen/page_files.c
	@mkdir -p $(@D)
	@echo '  CC    $<'
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c $< -o $@
$(CTLR_LIB): $(call obj,$(filter-out controller/main.c,$(CTLR_SRC))) $(PAGE_OBJ) ; $(archive)

CTLR_DEPS   = $(CTLR_LIB) $(STORE_LIB) $(BUILD)/lib/librwyplan.a $(MODEL_LIB) $(CONF_LIB) $(CORE_LIB) $(BASE_LIB)
$(BUILD)/bin/roceway-controller: $(call obj,controller/main.c) $(CTLR_DEPS)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDFLAGS_ALL) $(CTLR_LIBS) $(PLAN_LIBS) $(CORE_LIBS) -lm
$(if $(wildcard controller/main.c),$(eval all: $(BUILD)/bin/roceway-controller))

STORE_TEST := $(filter $(BUILD)/tests/unit/test_store%,$(UNIT_BIN))
$(STORE_TEST): $(call obj,$(wildcard tests/lib/store/*.c)) $(STORE_LIB) $(BASE_LIB)
$(STORE_TEST): LDFLAGS_ALL += $(shell $(PC) --libs libcurl sqlite3) -lpthread
$(filter $(BUILD)/tests/unit/test_model% $(BUILD)/tests/unit/test_plan_standby,$(UNIT_BIN)): $(MODEL_LIB)
CTLR_TEST  := $(filter $(BUILD)/tests/unit/test_ctlr%,$(UNIT_BIN))
$(CTLR_TEST): $(CTLR_DEPS)
$(CTLR_TEST): LDFLAGS_ALL += $(CTLR_LIBS) $(PLAN_LIBS)
# Fuzzes clients' JSON.
$(BUILD)/tests/fuzz/fuzz_ctlr_json: $(MODEL_LIB)
$(BUILD)/tests/fuzz/fuzz_ctlr_json: LDFLAGS_ALL += -ljansson
# Fuzz the program without HTTP and store; etcd without connections; the configuration.
FUZZ_CTLR := $(BUILD)/tests/fuzz/fuzz_ctlr_store $(BUILD)/tests/fuzz/fuzz_ctlr_conf
$(FUZZ_CTLR): $(CTLR_DEPS)
$(FUZZ_CTLR): LDFLAGS_ALL += $(CTLR_DEPS) $(CTLR_LIBS) $(PLAN_LIBS)
$(BUILD)/tests/fuzz/fuzz_etcd: $(STORE_LIB)
$(BUILD)/tests/fuzz/fuzz_etcd: LDFLAGS_ALL += $(shell $(PC) --libs jansson sqlite3)
FUZZ_LIBS_ctlr_store = $(CTLR_DEPS:$(BUILD)/%=$(BUILD)/fuzz/%) $(CTLR_LIBS) $(PLAN_LIBS)
FUZZ_LIBS_ctlr_conf = $(FUZZ_LIBS_ctlr_store)
FUZZ_LIBS_etcd = $(BUILD)/fuzz/lib/librwystore.a -lsqlite3
core: $(MODEL_LIB)
.PHONY: fuzz-libs
fuzz-libs: core $(ANALYZE_LIB) $(REPLAY_LIB) $(STORE_LIB) $(CTLR_LIB)
