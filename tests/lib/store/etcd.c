/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and ends etcd nodes, with free ports, directories of their own and no output. */
#include "tests/lib/store/etcd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned free_port(int *fd)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);

	*fd = socket(AF_INET, SOCK_STREAM, 0);
	if (*fd < 0 || bind(*fd, (struct sockaddr *)&a, sizeof(a)) ||
	    getsockname(*fd, (struct sockaddr *)&a, &len))
		return 0;
	return ntohs(a.sin_port);
}

bool cluster_node_start(struct cluster *c, unsigned i)
{
	char name[16], dir[96], initial[512] = "";
	const pid_t self = getpid();
	pid_t pid;

	snprintf(name, sizeof(name), "n%u", i);
	snprintf(dir, sizeof(dir), "%s/%s", c->dir, name);
	for (unsigned k = 0; k < CLUSTER_NODES; k++) {
		const size_t n = strlen(initial);

		snprintf(initial + n, sizeof(initial) - n, "%sn%u=%s", k ? "," : "", k, c->peer[k]);
	}
	pid = fork();
	if (!pid) {
		const int null = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			_exit(1);
		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		execlp("etcd", "etcd", "--name", name, "--data-dir", dir, "--listen-client-urls", c->url[i],
		    "--advertise-client-urls", c->url[i], "--listen-peer-urls", c->peer[i],
		    "--initial-advertise-peer-urls", c->peer[i], "--initial-cluster", initial,
		    "--heartbeat-interval", "50", "--election-timeout", "500", "--quota-backend-bytes",
		    "67108864", (char *)NULL);
		_exit(127);
	}
	c->pid[i] = pid;
	return pid > 0;
}

/* True if the member answers reads, which needs a leader. */
static bool answers(const char *url)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd), "ETCDCTL_API=3 etcdctl --endpoints=%s get x >/dev/null 2>&1", url);
	return system(cmd) == 0; /* NOLINT(cert-env33-c): tests only */
}

bool cluster_start(struct cluster *c)
{
	int fd[2 * CLUSTER_NODES];
	bool ok = true;

	memset(c, 0, sizeof(*c));
	/* In memory: beside other tests a disk takes long for each fsync, and the leader changes. */
	snprintf(c->dir, sizeof(c->dir), "/dev/shm/rwy-etcd-XXXXXX");
	if (!mkdtemp(c->dir)) {
		snprintf(c->dir, sizeof(c->dir), "/tmp/rwy-etcd-XXXXXX");
		if (!mkdtemp(c->dir))
			return false;
	}
	for (unsigned i = 0; i < CLUSTER_NODES; i++) {
		snprintf(c->url[i], sizeof(c->url[i]), "http://127.0.0.1:%u", free_port(&fd[2 * i]));
		snprintf(c->peer[i], sizeof(c->peer[i]), "http://127.0.0.1:%u", free_port(&fd[2 * i + 1]));
	}
	for (unsigned i = 0; i < 2 * CLUSTER_NODES; i++)
		close(fd[i]);
	for (unsigned i = 0; ok && i < CLUSTER_NODES; i++)
		ok = cluster_node_start(c, i);
	for (unsigned i = 0; ok && i < CLUSTER_NODES; i++) {
		unsigned tries = 0;

		while (!answers(c->url[i]) && ++tries < 100 && waitpid(c->pid[i], NULL, WNOHANG) == 0)
			usleep(200000);
		ok = tries < 100 && kill(c->pid[i], 0) == 0;
	}
	if (!ok)
		cluster_stop(c);
	return ok;
}

void cluster_node_kill(struct cluster *c, unsigned i, int sig)
{
	if (c->pid[i] <= 0)
		return;
	kill(c->pid[i], sig);
	waitpid(c->pid[i], NULL, 0);
	c->pid[i] = 0;
}

void cluster_stop(struct cluster *c)
{
	char cmd[128];

	for (unsigned i = 0; i < CLUSTER_NODES; i++)
		cluster_node_kill(c, i, SIGKILL);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", c->dir);
	if (system(cmd)) /* NOLINT(cert-env33-c) */
		fprintf(stderr, "%s is left behind\n", c->dir);
}
