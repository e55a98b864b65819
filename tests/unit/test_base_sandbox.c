/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter of system calls, from inside: each case is a process of its own that gives up its
 * system calls as the programs do, and then tries what somebody would who had taken it over.
 * tests/component/gw_sandbox.py looks at the programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <netdb.h>
#include <pthread.h>
#include <seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sandbox.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static const enum base_sandbox kinds[] = {BASE_SANDBOX_GATEWAY, BASE_SANDBOX_AF_XDP, BASE_SANDBOX_CONTROLLER};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Runs fn(arg) in a process that has entered the sandbox. Returns its wait status; fn's value is
 * the exit status. */
static int inside(enum base_sandbox kind, int (*fn)(long arg), long arg)
{
	const pid_t pid = fork();
	char why[128];
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		if (base_sandbox_enter(kind, why, sizeof(why))) {
			fprintf(stderr, "cannot enter: %s\n", why);
			_exit(99);
		}
		_exit(fn(arg));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* --- what ends the process ------------------------------------------------------------------- */

static int call(long nr)
{
	(void)syscall(nr, 0, 0, 0, 0, 0, 0);
	return 0;
}

/* Typed here once more: all of these end the process, of both programs. */
static const char *const fatal[] = {"execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev",
    "process_madvise", "kcmp", "pidfd_getfd", "mount", "umount2", "pivot_root", "chroot", "move_mount",
    "open_tree", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "open_by_handle_at", "setns",
    "unshare", "swapon", "swapoff", "init_module", "finit_module", "delete_module", "kexec_load",
    "kexec_file_load", "reboot", "acct", "syslog", "perf_event_open", "userfaultfd", "add_key", "keyctl",
    "request_key", "capset", "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid",
    "setfsgid", "setgroups", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname",
    "setdomainname"};

static bool ended(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
}

static void test_fatal(void **state)
{
	for (unsigned k = 0; k < KINDS; k++)
		for (unsigned i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
			const int nr = seccomp_syscall_resolve_name(fatal[i]);

			assert_true(nr >= 0);
			if (SANITIZED && !strcmp(fatal[i], "ptrace"))
				continue; /* the sanitizer looks for leaks with it */
			if (!ended(inside(kinds[k], call, nr)))
				fail_msg("%s does not end program %u", fatal[i], k);
		}
}

static int exec_true(long arg)
{
	execl("/bin/true", "true", (char *)NULL);
	return 1;
}

/* The same number means another call on the 32-bit interfaces of the processor. */
static void test_other_interface(void **state)
{
#ifdef __x86_64__
	assert_true(ended(inside(BASE_SANDBOX_GATEWAY, call, 0x40000000L + SYS_getpid)));
#else
	skip();
#endif
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *exec_later(void *arg)
{
	pthread_mutex_lock(&gate); /* until the other thread is in the sandbox */
	exec_true(0);
	return NULL;
}

static int thread_exec(long early)
{
	pthread_t t;

	if (early) {
		pthread_mutex_unlock(&gate);
		sleep(60);
		return 1;
	}
	if (pthread_create(&t, NULL, exec_later, NULL))
		return 2;
	pthread_join(t, NULL);
	return 1;
}

static void test_exec(void **state)
{
	for (unsigned k = 0; k < KINDS; k++) {
		assert_true(ended(inside(kinds[k], exec_true, 0)));
		assert_true(ended(inside(kinds[k], thread_exec, 0))); /* of a thread that comes later */
	}
}

/* A thread that was there before has the filter, too. */
static void test_other_threads(void **state)
{
	const pid_t pid = fork();
	char why[128];
	pthread_t t;
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		pthread_mutex_lock(&gate);
		if (pthread_create(&t, NULL, exec_later, NULL) ||
		    base_sandbox_enter(BASE_SANDBOX_GATEWAY, why, sizeof(why)))
			_exit(99);
		_exit(thread_exec(1));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(ended(status));
}

/* --- what fails ------------------------------------------------------------------------------- */

/* 0: it fails with ENOSYS. */
static int refused(long rc)
{
	return rc == -1 && errno == ENOSYS ? 0 : 1;
}

static int processes(long arg)
{
	FILE *f;

	if (refused(fork()) || system("true") == 0)
		return 1;
	f = popen("true", "r");
	return f ? 2 : refused(syscall(SYS_clone, SIGCHLD | CLONE_NEWUSER, 0, 0, 0, 0));
}

static int memory(long arg)
{
	const size_t size = 4096;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || refused(mprotect(p, size, PROT_READ | PROT_EXEC)))
		return 1;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED && errno == ENOSYS ? 0 : 2;
}

static int signals(long other)
{
	if (kill(getpid(), 0) || refused(kill((pid_t)other, 0)))
		return 1;
	return refused(syscall(SYS_tgkill, other, other, 0));
}

static int unlisted(long arg)
{
	static const long nr[] = {SYS_io_uring_setup, SYS_clone3, SYS_personality, SYS_mknodat, SYS_symlinkat,
	    SYS_linkat, SYS_fchownat, SYS_seccomp, 100000};

	for (unsigned i = 0; i < sizeof(nr) / sizeof(nr[0]); i++)
		if (refused(syscall(nr[i], 0, 0, 0, 0, 0, 0)))
			return (int)i + 1;
	return SANITIZED ? 0 : refused(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}

static int sockets_controller(long arg)
{
	if (refused(socket(AF_PACKET, SOCK_RAW, 0)) || refused(syscall(SYS_memfd_create, "x", 0)))
		return 1;
	return refused(socket(AF_ALG, SOCK_SEQPACKET, 0)) || refused(socket(AF_VSOCK, SOCK_STREAM, 0));
}

/* bpf, with ports that need it: what is open may be looked at and changed, and nothing is loaded or
 * opened by its path. */
static int bpf_of_ports(long any)
{
	for (long cmd = 0; cmd < 40; cmd++) {
		const bool open = any && (cmd == BPF_MAP_LOOKUP_ELEM || cmd == BPF_MAP_UPDATE_ELEM ||
		                             cmd == BPF_MAP_DELETE_ELEM || cmd == BPF_PROG_GET_FD_BY_ID ||
		                             cmd == BPF_BTF_GET_FD_BY_ID || cmd == BPF_OBJ_GET_INFO_BY_FD);

		if (refused(syscall(SYS_bpf, cmd, 0, 0)) == !open)
			return (int)cmd + 1;
	}
	return 0;
}

static void test_refused(void **state)
{
	for (unsigned k = 0; k < KINDS; k++) {
		assert_int_equal(inside(kinds[k], processes, 0), 0);
		assert_int_equal(inside(kinds[k], memory, 0), 0);
		assert_int_equal(inside(kinds[k], signals, getpid()), 0);
		assert_int_equal(inside(kinds[k], unlisted, 0), 0);
	}
	assert_int_equal(inside(BASE_SANDBOX_CONTROLLER, sockets_controller, 0), 0);
	assert_int_equal(inside(BASE_SANDBOX_AF_XDP, bpf_of_ports, 1), 0);
	assert_int_equal(inside(BASE_SANDBOX_GATEWAY, bpf_of_ports, 0), 0);
	assert_int_equal(inside(BASE_SANDBOX_CONTROLLER, bpf_of_ports, 0), 0);
}

/* --- what works ------------------------------------------------------------------------------- */

static void *one(void *arg)
{
	return arg;
}

static int work(long arg)
{
	char path[] = "/tmp/test_base_sandbox.XXXXXX";
	const int fd = mkstemp(path);
	struct addrinfo *found;
	pthread_t t;
	void *out;

	if (fd < 0 || write(fd, "x", 1) != 1 || fsync(fd) || close(fd) || unlink(path))
		return 1;
	if (pthread_create(&t, NULL, one, path) || pthread_join(t, &out) || out != path)
		return 2;
	if (getaddrinfo("localhost", NULL, NULL, &found))
		return 3;
	freeaddrinfo(found);
	if (socket(AF_INET6, SOCK_DGRAM, 0) < 0 || socket(AF_NETLINK, SOCK_RAW, 0) < 0)
		return 4;
	/* the C library loads modules for names of users, groups and hosts */
	return dlopen("libnss_compat.so.2", RTLD_NOW) || dlopen("libm.so.6", RTLD_NOW) ? 0 : 5;
}

static int ports(long arg)
{
	/* without the right to, but not without the call */
	if (socket(AF_PACKET, SOCK_RAW, 0) < 0 && errno != EPERM)
		return 1;
	return syscall(SYS_memfd_create, "x", 0) < 0;
}

static int again(long kind)
{
	char why[128] = "";

	return base_sandbox_enter((enum base_sandbox)kind, why, sizeof(why)) == RWY_EINVAL && *why ? 0 : 1;
}

static void test_works(void **state)
{
	for (unsigned k = 0; k < KINDS; k++)
		assert_int_equal(inside(kinds[k], work, 0), 0);
	assert_int_equal(inside(BASE_SANDBOX_GATEWAY, ports, 0), 0);
}

/* A kernel that does not do it, as this one after the first time. */
static void test_cannot(void **state)
{
	assert_int_equal(inside(BASE_SANDBOX_GATEWAY, again, BASE_SANDBOX_GATEWAY), 0);
}

/* A file with a set-user-ID bit would give nothing. */
static int no_new_privs(long arg)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 1;
}

static void test_no_new_privileges(void **state)
{
	assert_int_equal(inside(BASE_SANDBOX_CONTROLLER, no_new_privs, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_fatal),
	    cmocka_unit_test(test_other_interface), cmocka_unit_test(test_exec),
	    cmocka_unit_test(test_other_threads), cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_works), cmocka_unit_test(test_cannot),
	    cmocka_unit_test(test_no_new_privileges)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
