# SPDX-License-Identifier: Apache-2.0
# Roceway: one non-recursive Makefile. `make help` lists the targets.
#
# How a file finds its place (nothing below needs an edit when a file is added):
#   roce/ wan/ wan/fec/ wan/wire/ cc/ vxlan/ tenant/ offload/ *.c -> build/lib/librwycore.a sans-I/O core: no DPDK, no socket, no clock
#   engine/*.c                 -> build/lib/librwyengine.a the per-worker engine: core objects tied together, still sans-I/O
#   proxy/*.c                  -> build/lib/librwyproxy.a  the relay's edge: links, rewriting, CM splice, still sans-I/O
#   proxy/relay/*.c            -> build/bin/roceway-proxy (with all of gateway/ but its main)
#   shim/*.c shim/agent/*.c    -> build/lib/librwyredirect.so, build/bin/roceway-run, roceway-host-agent: what runs on hosts (shim/shim.mk)
#   base/*.c                   -> build/lib/librwybase.a   shared by the programs: log, service notification, HTTP client
#   gateway/*.c gateway/*/*.c  -> build/bin/roceway-gateway (the only code that sees rte_*.h)
#   conf/*.c                   -> build/lib/librwyconf.a   configuration: schema, parser, check (no DPDK)
#   controller/plan/, provider/ -> build/lib/librwyplan.a  the planner and the ways to networks' controllers (controller/plan/plan.mk)
#   tools/roceway/*.c tools/analyze/*.c tools/anonymise/*.c tools/replay/*.c tools/replay/live/*.c -> build/bin/roceway
#   tools/wanem/*.c            -> build/bin/wanem
#   tests/unit/test_*.c        -> build/tests/unit/test_*  (cmocka), run by `make unit`
#   tests/component/test_*.c   -> build/tests/component/*  (cmocka, with DPDK): whole gateways over memory-only ports; and whole programs, *.py
#   tests/lib/*.c              -> build/lib/librwytest.a   what several tests share; rc_*.c and link.c are in the simulator, too
#   tests/sim/*.c              -> build/tests/sim/rwysim,  run by `make sim`
#   tests/sim/wan/*.c          -> build/tests/sim/rwywan,  the WAN segment alone: `make bench-wan`, docs/simulator.md
#   tests/sim/perf/*.c         -> build/tests/sim/rwyperf, perftest in virtual time: the same page
#   tests/sim/stall/*.c        -> build/tests/sim/rwystall, stalls at a takeover: the same page
#   tests/sim/dc/*.c           -> build/tests/sim/rwydc,   two data centers and the engines between them: the same page
#   tests/fuzz/fuzz_*.c        -> build/tests/fuzz/fuzz_*  (libFuzzer or replay), corpora in tests/fuzz/corpus/NAME/
#   tests/bench/bench_*.c      -> build/tests/bench/bench_*
#   tests/e2e/guest/*.c        -> build/guest/*            programs that run inside the lab's hosts, each with guest/lib/

MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := all

BUILD   ?= build
# make V=1 prints the commands
Q       := $(if $(V),,@)
CC      ?= gcc
ifeq ($(origin CC),default)
CC      := gcc
endif
VERSION := $(shell cat VERSION 2>/dev/null || echo 0)
PREFIX  ?= /usr/local
DESTDIR ?=
UNITDIR ?= $(PREFIX)/lib/systemd/system

WARN    := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
           -Wswitch -Wvla -Wundef -Wno-unused-parameter
OPT     ?= -O2 -g
ARCH    ?= -march=x86-64-v3
# Each function begins a cache line: a packet passes some hundred of them, and takes 1 to 4 % fewer cycles.
ALIGN   ?= -falign-functions=64
CSTD    := -std=c17 -D_GNU_SOURCE
SAN     ?=
# LTO=1: the gateway, the relay and what measures or tests them whole are optimised across files, as packages are (debian/rules):
# 4 % fewer cycles a packet, half as much again to compile; gcc only. Other tests and the simulators are not: they replace functions
# when they are linked (--wrap).
LTO     ?=
LTO_CC  := $(if $(LTO),-flto=auto -ffat-lto-objects)
CFLAGS_ALL := $(CSTD) $(OPT) $(ALIGN) $(LTO_CC) $(ARCH) $(WARN) $(SAN) -fno-common -fno-strict-aliasing -Iinclude -I. $(CFLAGS)
CPPFLAGS_ALL := -DRWY_VERSION='"$(VERSION)"' $(CPPFLAGS)
LDFLAGS_ALL := $(SAN) $(LDFLAGS) $(if $(LTO),-fno-lto)

PC      := pkg-config
# Where libipsec-mb is missing (it is for amd64 only), aead/ has GnuTLS.
CORE_LIBS  := -lisal -lgnutls $(if $(wildcard /usr/include/intel-ipsec-mb.h),-lIPSec_MB)
DPDK_CFLAGS = $(shell $(PC) --cflags libdpdk)
DPDK_LIBS   = $(shell $(PC) --libs libdpdk)
GW_PKGS    := libmicrohttpd jansson libnl-3.0 libnl-route-3.0 yaml-0.1 libngtcp2 libngtcp2_crypto_gnutls gnutls libseccomp librdmacm libibverbs
GW_CFLAGS   = $(patsubst -I%,-isystem %,$(filter-out -march=%,$(DPDK_CFLAGS) $(shell $(PC) --cflags $(GW_PKGS))))
GW_LIBS     = $(DPDK_LIBS) -lrte_pdump $(shell $(PC) --libs $(GW_PKGS)) -lpthread

CORE_SRC   := $(wildcard aead/*.c roce/*.c wan/*.c wan/fec/*.c wan/wire/*.c cc/*.c vxlan/*.c tenant/*.c offload/*.c)
BASE_SRC   := $(wildcard base/*.c)
ENGINE_SRC := $(wildcard engine/*.c)
PROXY_SRC  := $(wildcard proxy/*.c)
CONF_SRC   := $(wildcard conf/*.c)
GW_SRC     := $(wildcard gateway/*.c gateway/*/*.c)
CLI_SRC    := $(wildcard tools/roceway/*.c)
ANALYZE_SRC := $(wildcard tools/analyze/*.c)
ANONYMISE_SRC := $(wildcard tools/anonymise/*.c)
REPLAY_SRC := $(wildcard tools/replay/*.c)
REPLAY_LIVE_SRC := $(wildcard tools/replay/live/*.c)
WANEM_SRC  := $(wildcard tools/wanem/*.c)
UNIT_SRC   := $(wildcard tests/unit/test_*.c)
GWTEST_SRC := $(wildcard tests/component/test_*.c)
GWTEST_HELP := $(filter-out $(GWTEST_SRC),$(wildcard tests/component/*.c))
UNIT_HELP  := $(wildcard tests/lib/*.c)
SIM_SRC    := $(wildcard tests/sim/*.c)
SIMWAN_SRC := $(wildcard tests/sim/wan/*.c)
SIMDC_SRC  := $(wildcard tests/sim/dc/*.c)
SIMPERF_SRC := $(wildcard tests/sim/perf/*.c) tests/sim/dc/words.c
SIMSTALL_SRC := $(wildcard tests/sim/stall/*.c) tests/sim/dc/words.c
FUZZ_SRC   := $(wildcard tests/fuzz/fuzz_*.c)
BENCH_SRC  := $(wildcard tests/bench/bench_*.c)
BENCH_HELP := $(filter-out $(BENCH_SRC),$(wildcard tests/bench/*.c))
GUEST_SRC  := $(wildcard tests/e2e/guest/*.c)
GUEST_HELP := $(wildcard tests/e2e/guest/lib/*.c)

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
include gateway/agent/agent.mk shim/shim.mk
CORE_LIB   := $(BUILD)/lib/librwycore.a
BASE_LIB   := $(BUILD)/lib/librwybase.a
ENGINE_LIB := $(BUILD)/lib/librwyengine.a
PROXY_LIB  := $(BUILD)/lib/librwyproxy.a
CONF_LIB   := $(BUILD)/lib/librwyconf.a
ANALYZE_LIB := $(BUILD)/lib/librwyanalyze.a
REPLAY_LIB := $(BUILD)/lib/librwyreplay.a
BENCH_LIB  := $(BUILD)/lib/librwybench.a
TEST_LIB   := $(BUILD)/lib/librwytest.a
UNIT_BIN   := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(UNIT_SRC))
GWTEST_BIN := $(patsubst tests/component/%.c,$(BUILD)/tests/component/%,$(GWTEST_SRC))
FUZZ_BIN   := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,$(FUZZ_SRC))
BENCH_BIN  := $(patsubst tests/bench/%.c,$(BUILD)/tests/bench/%,$(BENCH_SRC))
GUEST_BIN  := $(patsubst tests/e2e/guest/%.c,$(BUILD)/guest/%,$(GUEST_SRC))
GUEST_LIB  := $(BUILD)/lib/librwyguest.a
PROGS      := $(if $(GW_SRC),$(BUILD)/bin/roceway-gateway $(BUILD)/bin/roceway-proxy) $(if $(CLI_SRC),$(BUILD)/bin/roceway) \
              $(if $(WANEM_SRC),$(BUILD)/bin/wanem)

.PHONY: all
all: core $(PROGS) man completion ## build everything that is installed

# Manual pages and completion, from what the programs say of themselves.
MAN_PAGES := roceway.1 roceway-ca.1 roceway-run.1 wanem.1 roceway-gateway.yaml.5 roceway-controller.yaml.5 roceway-metrics.7 \
             roceway-gateway.8 roceway-proxy.8 roceway-controller.8 roceway-host-agent.8
COMPLETIONS := bash zsh fish
$(BUILD)/man/stamp: tools/manual/manual CHANGELOG.md VERSION conf/samples/gateway.yaml conf/samples/controller.yaml $(PROGS) $(BUILD)/bin/roceway-controller $(BUILD)/bin/roceway-run $(BUILD)/bin/roceway-host-agent $(BUILD)/bin/roceway-ca
	@mkdir -p $(@D)
	@echo '  MAN   $(@D)'
	$(Q)tools/manual/manual $(BUILD) $(@D) $(VERSION)
	@touch $@
$(BUILD)/bin/roceway-ca: tools/ca/roceway-ca VERSION
	@mkdir -p $(@D)
	$(Q)sed 's/^VERSION=source .*/VERSION=$(VERSION)/' $< > $@ && chmod 755 $@
$(BUILD)/completion/%: $(BUILD)/bin/roceway
	@mkdir -p $(@D)
	$(Q)$< completion $* > $@
# The relay's unit is the gateway's, with other names: one sandbox for both.
RELAY_UNIT := $(BUILD)/units/roceway-proxy.service
$(RELAY_UNIT): conf/systemd/roceway-gateway.service
	@mkdir -p $(@D)
	$(Q)sed 's,roceway-gateway,roceway-proxy,g; s,gateway\.yaml,proxy.yaml,g; s,Roceway WAN RDMA gateway,Roceway relay,; /^Documentation=/s,proxy.yaml,gateway.yaml,' $< > $@
all: $(RELAY_UNIT)
.PHONY: man completion
man: $(BUILD)/man/stamp ## the manual pages: build/man/*.[1578]
completion: $(COMPLETIONS:%=$(BUILD)/completion/%)

.PHONY: core
core: $(CORE_LIB) $(PROXY_LIB) $(ENGINE_LIB) $(CONF_LIB) $(BASE_LIB)

# --- objects ----------------------------------------------------------------------------------
$(BUILD)/obj/gateway/%.o: gateway/%.c
	@mkdir -p $(@D)
	@echo '  CC    $<'
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(GW_CFLAGS) -MMD -MP -c $< -o $@
$(BUILD)/obj/tests/bench/%.o: tests/bench/%.c
	@mkdir -p $(@D)
	@echo '  CC    $<'
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(GW_CFLAGS) -MMD -MP -c $< -o $@
$(BUILD)/obj/tests/component/%.o: tests/component/%.c
	@mkdir -p $(@D)
	@echo '  CC    $<'
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(GW_CFLAGS) -MMD -MP -c $< -o $@
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo '  CC    $<'
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

define archive
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) qcs $@ $(filter %.o,$^)
endef
$(CORE_LIB): $(call obj,$(CORE_SRC)) ; $(archive)
$(BASE_LIB): $(call obj,$(BASE_SRC)) ; $(archive)
$(ENGINE_LIB): $(call obj,$(ENGINE_SRC)) ; $(archive)
$(PROXY_LIB): $(call obj,$(PROXY_SRC)) ; $(archive)
$(CONF_LIB): $(call obj,$(CONF_SRC)) ; $(archive)
$(ANALYZE_LIB): $(call obj,$(ANALYZE_SRC)) ; $(archive)
# With wanem's link, and its settings as text.
$(REPLAY_LIB): $(call obj,$(REPLAY_SRC) tools/wanem/link.c tools/wanem/set.c) ; $(archive)
# For benchmarks: the gateway without its main, and what the benchmarks share. A benchmark takes from it what it names.
$(BENCH_LIB): $(call obj,$(BENCH_HELP) tests/lib/rc_pkt.c $(filter-out gateway/main.c,$(GW_SRC))) ; $(archive)
# The control center's parts bring their own rules.
include $(wildcard controller/*.mk controller/*/*.mk)

# --- programs ---------------------------------------------------------------------------------
ifneq ($(LTO),)
$(BUILD)/bin/roceway-gateway $(BUILD)/bin/roceway-proxy $(BENCH_BIN) $(GWTEST_BIN): LDFLAGS_ALL := $(filter-out -fno-lto,$(LDFLAGS_ALL)) -flto=auto
endif
$(BUILD)/bin/roceway-gateway: $(call obj,$(GW_SRC)) $(PROXY_LIB) $(ENGINE_LIB) $(CONF_LIB) $(CORE_LIB) $(BASE_LIB)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(GW_LIBS) $(CORE_LIBS)
$(BUILD)/bin/roceway-proxy: $(call obj,proxy/relay/main.c $(filter-out gateway/main.c,$(GW_SRC))) $(PROXY_LIB) $(ENGINE_LIB) $(CONF_LIB) $(CORE_LIB) $(BASE_LIB)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(GW_LIBS) $(CORE_LIBS)
$(BUILD)/bin/roceway: $(call obj,$(CLI_SRC) $(ANONYMISE_SRC) $(REPLAY_LIVE_SRC)) $(REPLAY_LIB) $(ANALYZE_LIB) $(ENGINE_LIB) $(CORE_LIB) $(BASE_LIB)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(shell $(PC) --libs jansson libcurl libpcap) $(CORE_LIBS) -lm
$(BUILD)/bin/wanem: $(call obj,$(WANEM_SRC))
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) -lm
$(GUEST_LIB): $(call obj,$(GUEST_HELP)) ; $(archive)
# tc flower against the guest's kernel: the gateway's own backend.
$(BUILD)/guest/rwy_flower: $(call obj,tests/e2e/guest/rwy_flower.c gateway/offload/tc.c gateway/offload/flower.c gateway/offload/vxlan.c) $(CORE_LIB)
	@mkdir -p $(@D)
	@echo '  GUEST $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(shell $(PC) --libs libnl-3.0 libnl-route-3.0) $(CORE_LIBS)
$(BUILD)/guest/%: tests/e2e/guest/%.c $(GUEST_LIB)
	@mkdir -p $(@D)
	@echo '  GUEST $@'
	$(Q)$(CC) $(CSTD) -O2 -g $(WARN) -MMD -MP -MF $@.d -o $@ $< $(GUEST_LIB) -libverbs -lrdmacm -lpthread

.PHONY: guest
guest: $(GUEST_BIN) $(BUILD)/tests/wan_attack

# --- tests ------------------------------------------------------------------------------------
# A test links only objects that it needs: if its program is the same after a change, it need not run again (tests/passed.py).
$(TEST_LIB): $(call obj,$(UNIT_HELP)) ; $(archive)
$(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(TEST_LIB) $(PROXY_LIB) $(ENGINE_LIB) $(CONF_LIB) $(CORE_LIB) $(BASE_LIB)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS_ALL) -lcmocka -lyaml -ljansson $(CORE_LIBS) -lm
# What the control thread does, over workers without DPDK; of that, the publisher has rte_rcu_qsbr.
TENANT_OBJ := $(call obj,$(filter-out %_worker.c,$(wildcard gateway/control/tenants*.c)) base/log.c $(wildcard tests/lib/gw/*.c))
# Without file.c, which needs libpcap.
$(filter $(BUILD)/tests/unit/test_analyze%,$(UNIT_BIN)) $(BUILD)/tests/fuzz/fuzz_analyze: $(call obj,$(filter-out tools/analyze/file.c,$(ANALYZE_SRC)) base/say.c)
FUZZ_LIBS_analyze = $(BUILD)/fuzz/lib/librwyanalyze.a $(BUILD)/fuzz/lib/librwybase.a
$(BUILD)/tests/unit/test_replay $(BUILD)/tests/unit/test_replay_psn $(BUILD)/tests/fuzz/fuzz_replay: $(call obj,$(filter-out tools/analyze/file.c,$(ANALYZE_SRC)) base/say.c) $(REPLAY_LIB)
$(BUILD)/tests/unit/test_replay_cm: $(call obj,tools/replay/live/cm.c $(filter-out tools/analyze/file.c,$(ANALYZE_SRC)) base/say.c) $(REPLAY_LIB)
FUZZ_LIBS_replay = $(BUILD)/fuzz/lib/librwyreplay.a $(BUILD)/fuzz/lib/librwyanalyze.a $(BUILD)/fuzz/lib/librwybase.a
# With libpcap.
$(BUILD)/tests/fuzz/fuzz_files: $(call obj,$(ANALYZE_SRC) $(ANONYMISE_SRC) tools/roceway/capture_block.c base/say.c)
$(BUILD)/tests/fuzz/fuzz_files: LDFLAGS_ALL += $(shell $(PC) --libs libpcap)
FUZZ_LIBS_files = $(ANONYMISE_SRC) tools/roceway/capture_block.c $(BUILD)/fuzz/lib/librwyanalyze.a $(BUILD)/fuzz/lib/librwybase.a $(shell $(PC) --libs libpcap)
TENANT_BIN := $(filter $(BUILD)/tests/unit/test_gw_tenants%,$(UNIT_BIN))
TENANT_WRAP := gw_publish_passed gw_publish_wait
$(TENANT_BIN): $(TENANT_OBJ)
$(TENANT_BIN): LDFLAGS_ALL += $(TENANT_WRAP:%=-Wl,--wrap=%)
$(TENANT_BIN) $(BUILD)/tests/unit/test_gw_publish: $(call obj,gateway/publish.c)
$(TENANT_BIN) $(BUILD)/tests/unit/test_gw_publish: LDFLAGS_ALL += $(DPDK_LIBS)
$(BUILD)/tests/unit/test_tunnel_watch: $(call obj,gateway/control/tunnel_watch.c)
# All but its thread and publication.
CAPTURE_OBJ := $(call obj,$(filter-out %/session.c,$(wildcard gateway/capture/*.c)) gateway/counters.c)
$(BUILD)/tests/unit/test_gw_capture $(BUILD)/tests/fuzz/fuzz_capture: $(CAPTURE_OBJ)
FUZZ_LIBS_capture = $(filter-out %/session.c,$(wildcard gateway/capture/*.c)) gateway/counters.c base/slots.c
$(BUILD)/tests/unit/test_api_roles: $(call obj,gateway/api/role.c gateway/api/routes.c)
$(BUILD)/tests/unit/test_gw_clock: $(call obj,gateway/clock.c gateway/utc.c)
$(BUILD)/tests/unit/test_gw_device: $(call obj,gateway/port/device.c)
$(BUILD)/tests/unit/test_gw_drain: $(call obj,gateway/control/drain.c gateway/control/status.c)
$(BUILD)/tests/unit/test_gw_jfile: $(call obj,gateway/datapath/jfile.c)
$(BUILD)/tests/unit/test_gw_recorder: $(call obj,gateway/datapath/jfile.c gateway/datapath/recorder.c gateway/utc.c)
$(BUILD)/tests/unit/test_gw_recorder_log: $(call obj,gateway/control/recorder_log.c)
$(BUILD)/tests/unit/test_gw_reservations: $(call obj,gateway/control/reservations.c)
$(BUILD)/tests/unit/test_gw_tunnel_log: $(call obj,gateway/control/tunnel_log.c gateway/control/tunnel_watch.c)
$(call obj,tests/unit/test_gw_tunnel_log.c): private CPPFLAGS_ALL += $(GW_CFLAGS)
$(BUILD)/tests/unit/test_gw_site_key: $(call obj,gateway/control/site_key.c)
QUIC_TEST_BIN := $(filter $(BUILD)/tests/unit/test_gw_quic%,$(UNIT_BIN))
$(QUIC_TEST_BIN): $(call obj,$(filter-out %_port.c %_sock.c,$(wildcard gateway/carrier/quic_*.c)) gateway/tls/cert.c tests/lib/cert/cert.c tests/lib/quic/lab.c)
$(QUIC_TEST_BIN): LDFLAGS_ALL += $(shell $(PC) --libs libngtcp2 libngtcp2_crypto_gnutls gnutls)
# Allocations fail when the test says so.
$(BUILD)/tests/unit/test_eng_no_memory: LDFLAGS_ALL += -Wl,--wrap=calloc -Wl,--wrap=aligned_alloc
$(BUILD)/tests/unit/test_wan_stale: LDFLAGS_ALL += -Wl,--wrap=realloc
# A client without a certificate is made by the test.
$(BUILD)/tests/unit/test_gw_quic_certificates: LDFLAGS_ALL += -Wl,--wrap=gnutls_certificate_set_x509_key_file
$(BUILD)/tests/unit/test_gw_rdma: $(call obj,$(addprefix gateway/carrier/rdma_,flow.c seal.c setup.c))
$(BUILD)/tests/unit/test_gw_keys: $(call obj,gateway/tls/cert.c gateway/tls/bytes.c gateway/keys/exchange.c gateway/keys/exchange_tls.c tests/lib/cert/cert.c)
$(BUILD)/tests/unit/test_gw_keys: LDFLAGS_ALL += $(shell $(PC) --libs gnutls)
$(BUILD)/tests/unit/test_gw_keys_pair: $(call obj,gateway/keys/follow.c)
$(BUILD)/tests/unit/test_base_sandbox: LDFLAGS_ALL += $(shell $(PC) --libs libseccomp) -lpthread
$(BUILD)/tests/unit/test_cap_trigger: $(call obj,tools/roceway/capture_trigger.c tools/roceway/capture_block.c)
$(BUILD)/tests/unit/test_cap_write: $(call obj,tools/roceway/capture_write.c)
CAP_WRITE_WRAP := pwrite aio_write aio_error aio_return aio_suspend
$(BUILD)/tests/unit/test_cap_write: LDFLAGS_ALL += $(CAP_WRITE_WRAP:%=-Wl,--wrap=%)
$(BUILD)/tests/unit/test_base_http: $(BASE_LIB)
$(BUILD)/tests/unit/test_base_http: LDFLAGS_ALL += $(shell $(PC) --libs libcurl) -lpthread
# The API's pages with a simulated gateway, for tests/component/cli_api.py.
API_SERVER_SRC := $(wildcard gateway/api/*.c gateway/capture/*.c tests/component/api/*.c) \
                  $(filter-out %_worker.c,$(wildcard gateway/control/tenants*.c)) \
                  $(addprefix gateway/control/,access.c drain.c tunnels.c tunnels_get.c tunnels_merge.c reload.c status.c change_lock.c) \
                  gateway/counters.c gateway/publish.c gateway/offload/text.c base/crl.c base/fileacl.c base/notify.c base/siphash.c base/slots.c base/word.c \
                  $(addprefix engine/,config.c recorder.c recorder_text.c why.c msg.c)
$(BUILD)/tests/api_server: $(call obj,$(API_SERVER_SRC)) $(PROXY_LIB) $(CONF_LIB) $(CORE_LIB)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(DPDK_LIBS) -lmicrohttpd -ljansson -lyaml -lpthread $(CORE_LIBS)
# RC traffic between network namespaces, for tests/component/gw_drain.py and relay_chain.py.
$(BUILD)/tests/rc_veth: $(call obj,$(wildcard tests/component/rc/*.c)) $(TEST_LIB) $(CORE_LIB)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(CORE_LIBS)
# The prepared captures, for tests/component/analyze_limits.py.
$(BUILD)/tests/captures: $(call obj,tests/component/captures/main.c) $(TEST_LIB) $(ENGINE_LIB) $(CORE_LIB)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) -lcmocka $(CORE_LIBS) -lm
# Somebody in the WAN, for tests/component/gw_attack.py and tests/e2e/test_security.py.
$(BUILD)/tests/wan_attack: $(call obj,$(wildcard tests/component/attacker/*.c)) $(CORE_LIB)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(CORE_LIBS) -lm
# A peer with a storm of KeyUpdates, for tests/component/gw_keys_bad.py.
$(BUILD)/tests/tls_storm: $(call obj,tests/component/storm/tls_storm.c)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) -lgnutls
# An end of the QUIC carrier alone, for tests/component/quic_interop.py.
$(BUILD)/tests/quic_peer: $(call obj,$(filter-out %_port.c,$(wildcard gateway/carrier/quic_*.c)) gateway/tls/cert.c $(wildcard tests/component/quic/*.c)) $(CORE_LIB) $(BASE_LIB)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(shell $(PC) --libs libngtcp2 libngtcp2_crypto_gnutls gnutls) $(CORE_LIBS) -Wl,--wrap=gnutls_alpn_set_protocols
SIM_WRAP := malloc free calloc realloc aligned_alloc
# All but main.c of the explorer as a library: rwyperf and rwystall link the parts that they use.
SIMWORLD_LIB := $(BUILD)/lib/librwysim.a
SIMWORLD_SRC := $(filter-out tests/sim/main.c,$(SIM_SRC)) $(wildcard tests/lib/rc_*.c) tests/lib/link.c tests/lib/aead_test.c
$(SIMWORLD_LIB): $(call obj,$(SIMWORLD_SRC)) ; $(archive)
$(BUILD)/tests/sim/rwysim: $(call obj,tests/sim/main.c) $(SIMWORLD_LIB) $(ENGINE_LIB) $(CORE_LIB)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(SIM_WRAP:%=-Wl,--wrap=%) $(CORE_LIBS) -lm
$(BUILD)/tests/sim/rwyperf: $(call obj,$(SIMPERF_SRC)) $(SIMWORLD_LIB) $(ENGINE_LIB) $(CORE_LIB)
$(BUILD)/tests/sim/rwystall: $(call obj,$(SIMSTALL_SRC)) $(SIMWORLD_LIB) $(ENGINE_LIB) $(CORE_LIB)
$(BUILD)/tests/sim/rwyperf $(BUILD)/tests/sim/rwystall:
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(CORE_LIBS) -lm
# A thin packet carries only its first bytes: tests/sim/wan/seal.c, thin_ec.c.
SIMWAN_WRAP := wan_pkt_seal wan_pkt_open ec_encode_data ec_encode_data_update gf_vect_dot_prod gf_vect_mad
$(BUILD)/tests/sim/rwywan: $(call obj,$(SIMWAN_SRC)) $(CORE_LIB)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(SIMWAN_WRAP:%=-Wl,--wrap=%) $(CORE_LIBS) -lm
# Thin here too: the ICRC (tests/sim/dc/thin.c) besides the datagram checksum.
SIMDC_WRAP := wan_pkt_seal wan_pkt_open roce_icrc_ok roce_icrc_set_ackreq roce_icrc_extend roce_content_crc
$(BUILD)/tests/sim/rwydc: $(call obj,$(SIMDC_SRC) tests/sim/wan/seal.c) $(ENGINE_LIB) $(CORE_LIB)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(SIMDC_WRAP:%=-Wl,--wrap=%) $(CORE_LIBS) -lm
$(BUILD)/tests/bench/%: $(BUILD)/obj/tests/bench/%.o $(BENCH_LIB) $(PROXY_LIB) $(ENGINE_LIB) $(CONF_LIB) $(CORE_LIB) $(BASE_LIB)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $^ $(LDFLAGS_ALL) $(GW_LIBS) -lrte_net_ring $(CORE_LIBS) -lm

$(BUILD)/tests/bench/bench_quic: $(call obj,tests/lib/link.c)
$(filter $(BUILD)/tests/component/test_gw_carrier%,$(GWTEST_BIN)): $(call obj,tests/component/carrier/lab.c tests/lib/cert/cert.c $(wildcard tests/lib/rdma/*.c))
$(filter $(BUILD)/tests/component/test_gw_sibling%,$(GWTEST_BIN)): $(call obj,tests/component/sibling/lab.c)
# A device with rte_flow, which no memory-only port has.
FLOW_WRAP := rte_flow_validate rte_flow_create rte_flow_destroy rte_eth_dev_info_get rte_eth_dev_callback_register rte_eth_dev_callback_unregister
$(BUILD)/tests/component/test_gw_queues: $(call obj,tests/component/queues/device.c)
$(BUILD)/tests/component/test_gw_queues: LDFLAGS_ALL += $(FLOW_WRAP:%=-Wl,--wrap=%)
$(BUILD)/tests/component/%: $(BUILD)/obj/tests/component/%.o $(call obj,$(GWTEST_HELP)) $(BENCH_LIB) $(PROXY_LIB) $(ENGINE_LIB) $(CONF_LIB) $(CORE_LIB) $(BASE_LIB)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $(filter %.o,$^) $(filter-out %.o,$^) $(LDFLAGS_ALL) -lcmocka $(GW_LIBS) -lrte_net_ring $(CORE_LIBS) -lm

fuzz_parts = $(filter-out tests/fuzz/replay_main.c,$(wildcard tests/fuzz/$(1)_*.c))
# A fuzzer defines LLVMFuzzerTestOneInput, in fuzz_NAME.c; NAME_*.c beside it are parts of it. Here it is linked with a small main that replays files;
# `make fuzz F=NAME` builds it with libFuzzer instead.
$(BUILD)/tests/fuzz/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/obj/tests/fuzz/replay_main.o $(PROXY_LIB) $(ENGINE_LIB) $(CONF_LIB) $(CORE_LIB) $(BASE_LIB)
	@mkdir -p $(@D)
	@echo '  LD    $@'
	$(Q)$(CC) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDFLAGS_ALL) -lyaml $(CORE_LIBS) -lm

$(foreach f,$(FUZZ_SRC:tests/fuzz/fuzz_%.c=%),$(eval $(BUILD)/tests/fuzz/fuzz_$(f): $(call obj,$(call fuzz_parts,$(f)))))

# PART=quick|quick-component|again-component|plain|sanitized|component: those that a stage of tests/check runs; see tests/run-unit.
SIM_PROGS := $(BUILD)/tests/sim/rwywan $(BUILD)/tests/sim/rwydc $(BUILD)/tests/sim/rwyperf $(BUILD)/tests/sim/rwystall
PLAIN_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(shell grep -l -e 'long_case();' -e long_rounds $(UNIT_SRC)))
UNIT_quick := $(UNIT_BIN)
UNIT_quick-component := $(GWTEST_BIN)
UNIT_again-component := $(GWTEST_BIN)
UNIT_plain := $(PLAIN_TESTS)
UNIT_sanitized := $(UNIT_BIN)
UNIT_component := $(GWTEST_BIN)
UNIT_RUN := $(if $(PART),$(UNIT_$(PART)),$(UNIT_BIN) $(GWTEST_BIN))
# Scripts run these two to get packets for tshark.
EMITTERS := $(BUILD)/tests/unit/test_roce_emit $(BUILD)/tests/unit/test_wan_emit
WITH_component := $(BUILD)/tests/api_server $(BUILD)/tests/ctrl_agent $(BUILD)/tests/rc_veth $(BUILD)/tests/wan_attack $(BUILD)/tests/tls_storm $(BUILD)/tests/quic_peer $(BUILD)/tests/captures $(EMITTERS) all
WITH_quick := $(SHIM_LIBS) $(BUILD)/bin/roceway-run
WITH_quick-component := $(WITH_component)
WITH_again-component := $(WITH_component)
WITH_plain := $(SIM_PROGS) $(SHIM_LIBS) $(BUILD)/bin/roceway-run $(BUILD)/bin/roceway-host-agent
UNIT_WITH := $(if $(PART),$(WITH_$(PART)),$(WITH_component) $(WITH_plain))
.PHONY: unit
unit: $(UNIT_RUN) $(UNIT_WITH) ## unit tests (cmocka) and the tools' own tests; FULL=1: also what has passed with the same inputs
	@tests/run-unit $(if $(PART),--part $(PART)) $(BUILD) $(UNIT_RUN)
.PHONY: unit-build
unit-build: $(UNIT_BIN) $(GWTEST_BIN) $(WITH_component)

.PHONY: sim-build
sim-build: $(BUILD)/tests/sim/rwysim $(SIM_PROGS)

.PHONY: sim
sim: $(if $(SIM_SRC),$(BUILD)/tests/sim/rwysim) ## seeded runs of the whole engine in virtual time: SEEDS=N; SECONDS=S: as many as that gives
	@$(if $(SIM_SRC),$(BUILD)/tests/sim/rwysim --seeds $(or $(SEEDS),20000) $(if $(SECONDS),--seconds $(SECONDS)) --jobs $$(nproc))

.PHONY: sim-long
sim-long: $(BUILD)/tests/sim/rwysim ## the same for hours: N=SEEDS, FROM=SEED
	@$(BUILD)/tests/sim/rwysim --seeds $(or $(N),1000000) --from $(or $(FROM),1000000) --jobs $$(nproc)

.PHONY: fuzz-replay
fuzz-replay: $(FUZZ_BIN) ## replay every fuzz corpus
	@tests/fuzz/replay $(BUILD) $(FUZZ_BIN)

INTO ?= $(BUILD)/fuzz/corpus/$(F)
.PHONY: fuzz
fuzz: ## run one fuzzer with libFuzzer: F=NAME [SECONDS=60] [INTO=FOLDER of new inputs]
	$(MAKE) BUILD=$(BUILD)/fuzz CC=clang OPT='-O1 -g' SAN='-fsanitize=address,undefined,fuzzer-no-link' fuzz-libs
	@mkdir -p $(BUILD)/fuzz/bin $(INTO)
	clang $(CSTD) -O1 -g -Iinclude -I. -fsanitize=address,undefined,fuzzer tests/fuzz/fuzz_$(F).c $(call fuzz_parts,$(F)) -o $(BUILD)/fuzz/bin/fuzz_$(F) \
	  $(FUZZ_LIBS_$(F)) $(BUILD)/fuzz/lib/librwyproxy.a $(BUILD)/fuzz/lib/librwyengine.a $(BUILD)/fuzz/lib/librwyconf.a $(BUILD)/fuzz/lib/librwymodel.a $(BUILD)/fuzz/lib/librwycore.a $(BUILD)/fuzz/lib/librwybase.a \
	  -lyaml -ljansson $(CORE_LIBS) -lm
	$(BUILD)/fuzz/bin/fuzz_$(F) -max_total_time=$(or $(SECONDS),60) -artifact_prefix=$(BUILD)/fuzz/ $(INTO) tests/fuzz/corpus/$(F)

# The readers of captures, of anybody's files.
FUZZ_READERS := analyze files replay capture
.PHONY: fuzz-readers
fuzz-readers: ## the readers of captures with libFuzzer: SECONDS=60 each
	+@for f in $(FUZZ_READERS); do $(MAKE) --no-print-directory fuzz F=$$f || exit 1; done

ASAN := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
ASAN_MAKE = $(MAKE) BUILD=$(BUILD)/asan OPT='-O1 -g1' SAN='$(ASAN)'
.PHONY: asan asan-unit asan-unit-build asan-sim asan-sim-build asan-fuzz-replay
asan: ## unit, sim and fuzz replay under AddressSanitizer and UBSan: also asan-unit, asan-sim, asan-fuzz-replay
	+$(ASAN_MAKE) unit
	+$(ASAN_MAKE) sim SEEDS=$(or $(SEEDS),60)
	+$(ASAN_MAKE) fuzz-replay
asan-unit asan-unit-build asan-sim asan-fuzz-replay: asan-%:
	+$(ASAN_MAKE) $*
asan-sim-build:
	+$(ASAN_MAKE) $(BUILD)/asan/tests/sim/rwysim

TSAN_TESTS := test_eng_recorder test_wan_lease test_gw_publish test_gw_tenants test_gw_tenants_race
TSAN_MAKE = $(MAKE) BUILD=$(BUILD)/tsan OPT='-O1 -g' SAN='-fsanitize=thread'
.PHONY: tsan tsan-unit tsan-controller tsan-unit-build tsan-controller-build tsan-progs
tsan: tsan-unit tsan-controller ## what several threads change, under ThreadSanitizer
tsan-unit-build tsan-controller-build: tsan-%-build:
	+$(TSAN_MAKE) tsan-progs PROGS_TSAN='$(TSAN_$*)'
tsan-progs: $(PROGS_TSAN)
TSAN_unit := $(TSAN_TESTS:%=$(BUILD)/tsan/tests/unit/%)
TSAN_controller := $(BUILD)/tsan/bin/roceway-controller
tsan-unit: tsan-unit-build
	@for t in $(TSAN_unit); do TSAN_OPTIONS=halt_on_error=1 $$t || exit 1; done
tsan-controller: tsan-controller-build
	@tests/component/controller_kill.py $(BUILD)/tsan calm

# These folders are built without DPDK's headers: tests/lint/poison/ comes first, and DPDK's own are not on the path.
NODPDK_SRC := $(CORE_SRC) $(ENGINE_SRC) $(PROXY_SRC) $(CONF_SRC) $(BASE_SRC) $(wildcard controller/model/*.c controller/plan/*.c controller/provider/*.c)
$(call obj,$(NODPDK_SRC)): private CPPFLAGS_ALL += -Itests/lint/poison
.PHONY: nodpdk
nodpdk: core ## the sans-I/O folders name nothing of DPDK, and are built without it
	@tests/lint/no-dpdk

.PHONY: e2e
e2e: all guest ## end-to-end tests on real hosts in QEMU: T=PATTERN SCALE=0.1
	@tests/e2e/run $(if $(T),-k '$(T)') $(if $(SCALE),--scale $(SCALE))

.PHONY: demo
demo: ## build, boot the lab, print native RoCE beside Roceway
	@tools/setup/install
	@$(MAKE) --no-print-directory all guest
	@tests/e2e/demo

BENCHES := distance paths reads fastpath scale proxy wan tenants modes carriers control failover workloads capture
.PHONY: bench $(addprefix bench-,$(BENCHES))
bench: $(addprefix bench-,$(BENCHES)) ## all benchmarks: build/bench/*.json; bench-NAME: one of tests/bench (docs/performance.md)
$(addprefix bench-,$(BENCHES)): bench-%: all guest $(BENCH_BIN) $(BUILD)/tests/sim/rwywan $(BUILD)/tests/sim/rwydc $(BUILD)/tests/sim/rwysim $(BUILD)/tests/rc_veth $(BUILD)/tests/unit/test_plan_grid
	@tests/bench/run-$* $(BUILD)
.PHONY: profile-fastpath
profile-fastpath: $(BUILD)/tests/bench/bench_fastpath ## cycles of a packet by stages of its path, with perf: ARGS='--qps 256'
	@tests/bench/run-fastpath $(BUILD) --profile $(ARGS)

.PHONY: check check-ci check-long
check: ## what a change must pass first, in minutes; FULL=1: also what has passed with the same inputs
	@tools/setup/install
	@tests/check
check-ci: ## what CI runs: make check, then sanitizers, clang-tidy, all scripts, more real hosts and seeds
	@tools/setup/install
	@tests/check --ci
check-long: ## everything: every test both ways, 20,000 seeds, all of clang-tidy, every real-host test, packages
	@tools/setup/install --long
	@tests/check --long

# --- hygiene ----------------------------------------------------------------------------------
C_FILES = $(shell git ls-files '*.c' '*.h')
.PHONY: format lint
format: ## clang-format every C file in place
	clang-format -i $(C_FILES)
lint: all ## formatting, forbidden tokens, SPDX lines, layers, columns, circles, clang-tidy; FEW=1: of a few files, DEEP=1, FULL=1: of all, SHARD=I/N: of a part
	@tests/lint/lint $(if $(FEW),--few) $(if $(DEEP),--deep) $(if $(FULL),--full) $(if $(SHARD),--shard $(SHARD))

# put MODE,FILE,NAME under the prefix
put = install -D -m $(1) $(2) $(DESTDIR)$(PREFIX)/$(3)
.PHONY: install
install: all ## install programs, configuration sample, unit, completion and documentation
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/share/roceway/wireshark
	install -m 644 tools/dissector/roceway.lua tools/dissector/roceway.colors $(DESTDIR)$(PREFIX)/share/roceway/wireshark/
	install -m 755 tools/extcap/roceway-extcap $(DESTDIR)$(PREFIX)/share/roceway/wireshark/
	install -m 755 $(BUILD)/bin/roceway $(BUILD)/bin/roceway-ca $(DESTDIR)$(PREFIX)/bin/
	install -m 755 $(BUILD)/bin/wanem $(BUILD)/bin/roceway-run $(DESTDIR)$(PREFIX)/bin/
	for l in $(SHIM_LIBS); do $(call put,644,$$l,lib/roceway/$$(basename $$l)) || exit 1; done
	$(call put,644,conf/samples/redirect.conf,share/roceway/redirect.conf)
	$(call put,644,conf/samples/host-agent.conf,share/roceway/host-agent.conf)
	install -m 755 $(BUILD)/bin/roceway-gateway $(BUILD)/bin/roceway-proxy $(BUILD)/bin/roceway-controller $(BUILD)/bin/roceway-host-agent $(DESTDIR)$(PREFIX)/sbin/
	install -m 644 conf/samples/*.yaml $(DESTDIR)$(PREFIX)/share/roceway/
	$(call put,755,conf/systemd/roceway-prepare,lib/roceway/roceway-prepare)
	$(call put,755,tools/ranks/roceway-rank,share/roceway/ranks/roceway-rank)
	$(call put,644,conf/default/roceway-gateway,share/roceway/default/roceway-gateway)
	$(call put,644,conf/prometheus/roceway.rules.yaml,share/roceway/prometheus/roceway.rules.yaml)
	$(call put,644,conf/grafana/roceway.json,share/roceway/grafana/roceway.json)
	install -d $(DESTDIR)$(UNITDIR)
	for u in $(wildcard conf/systemd/*.service) $(RELAY_UNIT); do \
	  sed 's,/usr/local/,$(PREFIX)/,g' $$u >$(DESTDIR)$(UNITDIR)/$$(basename $$u) && chmod 644 $(DESTDIR)$(UNITDIR)/$$(basename $$u) || exit 1; done
	$(call put,644,$(BUILD)/completion/bash,share/bash-completion/completions/roceway)
	$(call put,644,$(BUILD)/completion/zsh,share/zsh/vendor-completions/_roceway)
	$(call put,644,$(BUILD)/completion/fish,share/fish/vendor_completions.d/roceway.fish)
	for p in $(MAN_PAGES); do \
	  install -D -m 644 $(BUILD)/man/$$p $(DESTDIR)$(PREFIX)/share/man/man$${p##*.}/$$p || exit 1; done
	install -d $(DESTDIR)$(PREFIX)/share/doc/roceway/docs/measurements $(DESTDIR)$(PREFIX)/share/doc/roceway/docs/captures
	install -m 644 README.md CHANGELOG.md CONTRIBUTING.md LICENSE $(DESTDIR)$(PREFIX)/share/doc/roceway/
	install -m 644 docs/*.md docs/*.png $(DESTDIR)$(PREFIX)/share/doc/roceway/docs/
	install -m 644 docs/measurements/*.md $(DESTDIR)$(PREFIX)/share/doc/roceway/docs/measurements/
	install -m 644 docs/captures/*.pcap $(DESTDIR)$(PREFIX)/share/doc/roceway/docs/captures/

.PHONY: test-packages test-monitoring
test-packages: deb $(BUILD)/tests/rc_veth ## the packages in a fresh Debian: install, traffic, upgrade under it, purge
	@tests/packages/run $(BUILD)
test-monitoring: all ## the alerts and the dashboard's queries with the real Prometheus
	@tests/monitoring/run $(BUILD)

# In a copy, so that the packages have nothing of this tree's build.
.PHONY: deb
deb: ## Debian packages: build/deb/*.deb
	rm -rf $(BUILD)/deb
	mkdir -p $(BUILD)/deb/roceway
	git ls-files -z --cached --others --exclude-standard | xargs -0 -I{} sh -c 'test ! -e "{}" || echo "{}"' | tar -cf - -T - | tar -xf - -C $(BUILD)/deb/roceway
	cd $(BUILD)/deb/roceway && dpkg-buildpackage -b -us -uc

.PHONY: clean
clean: ## remove build/
	rm -rf $(BUILD)

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
.SECONDARY:
