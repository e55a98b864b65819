/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seccomp filter of the gateway, the relay and the control center: see sandbox.h.
 * docs/security.md tells how the lists were found. tests/component/gw_sandbox.py and
 * tests/unit/test_base_sandbox.c try them.
 */
#include "base/sandbox.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/prctl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sanitizers look for leaks from a thread of their own, which needs more system calls. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* --- lists ------------------------------------------------------------------------------------ */

static const char *const everybody[] = {
    /* memory; mmap and mprotect are below */
    "brk", "madvise", "mincore", "mlock", "mlock2", "mremap", "msync", "munlock", "munmap",
    /* files */
    "access", "chmod", "close", "close_range", "creat", "dup", "dup2", "dup3", "faccessat", "faccessat2",
    "fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat", "fcntl", "fdatasync", "flock", "fstat",
    "fstatfs", "fsync", "ftruncate", "futimesat", "getcwd", "getdents", "getdents64", "getxattr", "ioctl",
    "lseek", "lstat", "mkdir", "mkdirat", "newfstatat", "open", "openat", "openat2", "pread64", "preadv",
    "pwrite64", "pwritev", "read", "readlink", "readlinkat", "readv", "rename", "renameat", "renameat2",
    "rmdir", "setxattr", "stat", "statfs", "statx", "truncate", "umask", "unlink", "unlinkat", "utimensat",
    "write", "writev",
    /* waiting, events */
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd",
    "eventfd2", "inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch", "pipe", "pipe2",
    "poll", "ppoll", "pselect6", "select", "signalfd", "signalfd4", "timerfd_create", "timerfd_gettime",
    "timerfd_settime",
    /* sockets; socket is below */
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen", "recvfrom",
    "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown", "sendfile",
    /* threads, time, signals; clone and prctl are below */
    "arch_prctl", "clock_getres", "clock_gettime", "clock_nanosleep", "exit", "exit_group", "futex",
    "get_robust_list", "getcpu", "getitimer", "gettid", "gettimeofday", "membarrier", "nanosleep",
    "restart_syscall", "rseq", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn",
    "rt_sigsuspend", "rt_sigtimedwait", "sched_get_priority_max", "sched_get_priority_min",
    "sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_setaffinity", "sched_setscheduler",
    "sched_yield", "set_robust_list", "set_tid_address", "setitimer", "sigaltstack", "time", "times",
    /* about oneself and the machine */
    "capget", "getegid", "geteuid", "getgid", "getgroups", "getpgrp", "getpid", "getppid", "getpriority",
    "getrandom", "getresgid", "getresuid", "getrlimit", "getrusage", "getuid", "prlimit64", "setpriority",
    "setrlimit", "sysinfo", "uname"};

/* DPDK and its drivers: hugepages and NUMA, memory shared with another process (memif). Captures:
 * the same, with the command (base/slots.h). */
static const char *const gateway[] = {"get_mempolicy", "mbind", "memfd_create", "migrate_pages", "mlockall",
    "move_pages", "munlockall", "set_mempolicy"};

/* SQLite gives its files the owner of the database. */
static const char *const controller[] = {"fchown"};

/* Nothing in these programs calls these, with any of its libraries. */
static const char *const fatal[] = {
    /* other programs */
    "execve", "execveat", "kcmp", "pidfd_getfd", "process_madvise", "process_vm_readv", "process_vm_writev",
    "ptrace",
    /* what the machine looks like */
    "chroot", "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount",
    "open_by_handle_at", "open_tree", "pivot_root", "setns", "swapoff", "swapon", "umount2", "unshare",
    /* the kernel */
    "acct", "delete_module", "finit_module", "init_module", "kexec_file_load", "kexec_load",
    "perf_event_open", "reboot", "syslog", "userfaultfd",
    /* keys of the kernel's keyrings */
    "add_key", "keyctl", "request_key",
    /* who one is */
    "capset", "setfsgid", "setfsuid", "setgid", "setgroups", "setregid", "setresgid", "setresuid", "setreuid",
    "setuid",
    /* the clock and the name of the machine */
    "adjtimex", "clock_adjtime", "clock_settime", "setdomainname", "sethostname", "settimeofday"};

/* Commands of bpf for maps and programs that are open, and to tell which they are: no program and
 * no map is loaded, attached, or opened by its path. */
static const int bpf_commands[] = {BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM,
    BPF_PROG_GET_FD_BY_ID, BPF_BTF_GET_FD_BY_ID, BPF_OBJ_GET_INFO_BY_FD};

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

/* --- rules ------------------------------------------------------------------------------------ */

struct rules {
	scmp_filter_ctx ctx;
	const char *failed; /* the first call without a rule; NULL: all have theirs */
	int rc;             /* and why: negative errno */
};

/* A call that this libseccomp or this processor does not have needs no rule. */
static void add(
    struct rules *r, uint32_t action, const char *name, unsigned n, const struct scmp_arg_cmp *cmp)
{
	const int nr = seccomp_syscall_resolve_name(name);
	int rc;

	if (r->failed || nr == __NR_SCMP_ERROR)
		return;
	rc = seccomp_rule_add_array(r->ctx, action, nr, n, cmp);
	if (rc) {
		r->failed = name;
		r->rc = rc;
	}
}

static void allow_all(struct rules *r, const char *const *name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add(r, SCMP_ACT_ALLOW, name[i], 0, NULL);
}

/* Allows the call when the bits of mask in the argument are as in value. */
static void allow_if(struct rules *r, const char *name, unsigned arg, uint64_t mask, uint64_t value)
{
	const struct scmp_arg_cmp cmp = {
	    .arg = arg, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};

	add(r, SCMP_ACT_ALLOW, name, 1, &cmp);
}

static void allow_only(struct rules *r, const char *name, unsigned arg, uint64_t value)
{
	allow_if(r, name, arg, UINT64_MAX, value);
}

/* Threads, but no processes and no namespaces. clone3 hides its flags in memory: it fails with
 * ENOSYS, and the C library takes clone. */
static void rules_clone(struct rules *r)
{
	const uint64_t spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
	                        CLONE_NEWPID | CLONE_NEWNET;

	allow_if(r, "clone", 0, CLONE_THREAD | spaces, CLONE_THREAD);
	if (SANITIZED)
		allow_if(r, "clone", 0, CLONE_UNTRACED | spaces, CLONE_UNTRACED);
}

/* No memory that is written and executed; libraries may still be loaded from files. */
static void rules_memory(struct rules *r)
{
	allow_if(r, "mmap", 2, PROT_EXEC, 0);
	allow_if(r, "mmap", 2, PROT_EXEC | PROT_WRITE, PROT_EXEC);
	allow_if(r, "mprotect", 2, PROT_EXEC, 0);
}

/* Signals to oneself alone: a gateway that root started could send them to all of root's. */
static void rules_signals(struct rules *r)
{
	const uint64_t me = (uint64_t)getpid();

	allow_only(r, "kill", 0, me);
	allow_only(r, "tgkill", 0, me);
}

static void rules_prctl(struct rules *r)
{
	static const int options[] = {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_CAPBSET_READ,
	    PR_SET_TIMERSLACK, PR_GET_TIMERSLACK, PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP, PR_SET_VMA};

	for (size_t i = 0; i < COUNT(options); i++)
		allow_only(r, "prctl", 0, (uint64_t)options[i]);
}

static void rules_sockets(struct rules *r, enum base_sandbox kind)
{
	static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

	for (size_t i = 0; i < COUNT(families); i++)
		allow_only(r, "socket", 0, (uint64_t)families[i]);
	if (kind != BASE_SANDBOX_CONTROLLER)
		allow_only(r, "socket", 0, AF_PACKET);
	allow_only(r, "socketpair", 0, AF_UNIX);
}

static void rules_bpf(struct rules *r)
{
	for (size_t i = 0; i < COUNT(bpf_commands); i++)
		allow_only(r, "bpf", 0, (uint64_t)bpf_commands[i]);
}

static void rules_sanitizers(struct rules *r)
{
	static const char *const calls[] = {"ptrace", "wait4", "waitid"};

	allow_all(r, calls, COUNT(calls));
	allow_only(r, "prctl", 0, PR_SET_DUMPABLE);
	allow_only(r, "prctl", 0, PR_SET_PTRACER);
}

static void rules(struct rules *r, enum base_sandbox kind)
{
	allow_all(r, everybody, COUNT(everybody));
	if (kind == BASE_SANDBOX_CONTROLLER)
		allow_all(r, controller, COUNT(controller));
	else
		allow_all(r, gateway, COUNT(gateway));
	if (kind == BASE_SANDBOX_AF_XDP)
		rules_bpf(r);
	rules_clone(r);
	rules_memory(r);
	rules_signals(r);
	rules_prctl(r);
	rules_sockets(r, kind);
	if (SANITIZED)
		rules_sanitizers(r);
	for (size_t i = 0; i < COUNT(fatal); i++)
		if (!SANITIZED || strcmp(fatal[i], "ptrace") != 0)
			add(r, SCMP_ACT_KILL_PROCESS, fatal[i], 0, NULL);
}

/* --- attributes and load ---------------------------------------------------------------------- */

/*
 * TSYNC: for all threads. OPTIMIZE: a tree instead of a list, since the packet path makes calls,
 * too. SSB: without it, kernels before 5.16 turn off the processor's guessing of stores for these
 * threads, which costs the packet path. The kernel's log has what ended the program, but not what
 * fails: each new thread would be in it for clone3.
 */
static int attributes(scmp_filter_ctx ctx)
{
	int rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);

	if (!rc)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (!rc)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_SSB, 1); /* kernels without it need it not */
	return rc;
}

int base_sandbox_enter(enum base_sandbox kind, char *why, size_t size)
{
	struct rules r = {.ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS))};
	int rc = r.ctx ? attributes(r.ctx) : -ENOMEM;

	if (!rc) {
		rules(&r, kind);
		rc = r.failed ? r.rc : seccomp_load(r.ctx);
	}
	if (rc)
		snprintf(why, size, "%s%s%s", r.failed ? r.failed : "", r.failed ? ": " : "", strerror(-rc));
	if (r.ctx)
		seccomp_release(r.ctx);
	return rc ? RWY_EINVAL : 0;
}
