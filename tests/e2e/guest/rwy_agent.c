/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lab's agent. It is the last program of /init in a guest and executes the lab's requests from
 * a virtio-serial port: several jobs at once, each in a process group of its own. It is not a shell
 * and knows nothing about RDMA.
 *
 * Frames, both ways: u32 type, u32 job id, u32 length (little-endian), then the payload.
 *   lab -> guest   'R' run the payload with /bin/sh -c, stdin closed
 *                  'S' the same; stdin comes in frames
 *                  'I' bytes of stdin; length 0 ends it
 *                  'K' payload u32: a signal for the job's process group
 *   guest -> lab   'H' hello after the start    'O' stdout    'E' stderr
 *                  'Z' payload u32: wait status; the job has ended
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS_MAX  64
#define CHUNK_MAX 32768

struct job {
	uint32_t id;
	pid_t pid; /* 0: slot free */
	int pidfd;
	int in, out, err; /* -1: closed */
};

struct head {
	uint32_t type, id, len;
};

static struct job jobs[JOBS_MAX];
static int port;

static void die(const char *what)
{
	fprintf(stderr, "rwy_agent: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			struct pollfd pfd = {.fd = fd, .events = POLLOUT};

			poll(&pfd, 1, 100);
			continue;
		}
		if (n <= 0)
			return; /* the reader is gone, and the rest is discarded */
		p += n;
		len -= (size_t)n;
	}
}

static void read_all(int fd, void *data, size_t len)
{
	char *p = data;

	while (len) {
		ssize_t n = read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			die("port read");
		if (n <= 0) { /* the lab has closed its end: wait for it */
			usleep(20000);
			continue;
		}
		p += n;
		len -= (size_t)n;
	}
}

static void frame_send(char type, uint32_t id, const void *data, uint32_t len)
{
	struct head h = {.type = (uint8_t)type, .id = id, .len = len};

	write_all(port, &h, sizeof(h));
	write_all(port, data, len);
}

static struct job *job_find(uint32_t id)
{
	for (int i = 0; i < JOBS_MAX; i++)
		if (jobs[i].pid && jobs[i].id == id)
			return &jobs[i];
	return NULL;
}

static void job_reject(uint32_t id, const char *why)
{
	uint32_t status = 126 << 8;

	frame_send('E', id, why, (uint32_t)strlen(why));
	frame_send('Z', id, &status, sizeof(status));
}

static void job_exec(char *cmd, int in, int out, int err)
{
	setsid();
	signal(SIGPIPE, SIG_DFL);
	dup2(in, 0);
	dup2(out, 1);
	dup2(err, 2);
	execl("/bin/sh", "sh", "-c", cmd, (char *)NULL);
	_exit(127);
}

static void job_start(uint32_t id, char *cmd, int with_stdin)
{
	struct job *j = NULL;
	int in[2] = {-1, -1}, out[2], err[2];

	for (int i = 0; i < JOBS_MAX && !j; i++)
		if (!jobs[i].pid)
			j = &jobs[i];
	if (!j || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) {
		job_reject(id, "rwy_agent: too many jobs\n");
		return;
	}
	if (with_stdin && pipe2(in, O_CLOEXEC)) {
		job_reject(id, "rwy_agent: no pipe\n");
		return;
	}
	if (!with_stdin)
		in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pid_t pid = fork();

	if (pid == 0)
		job_exec(cmd, in[0], out[1], err[1]);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	*j = (struct job){.id = id, .pid = pid, .in = in[1], .out = out[0], .err = err[0]};
	j->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	fcntl(j->pidfd, F_SETFD, FD_CLOEXEC);
	fcntl(j->out, F_SETFL, O_NONBLOCK);
	fcntl(j->err, F_SETFL, O_NONBLOCK);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void job_drain(struct job *j, int *fd, char type)
{
	static char buf[CHUNK_MAX];

	while (*fd >= 0) {
		ssize_t n = read(*fd, buf, sizeof(buf));

		if (n > 0) {
			frame_send(type, j->id, buf, (uint32_t)n);
			continue;
		}
		if (n == 0)
			close_fd(fd);
		else if (errno == EINTR)
			continue;
		return;
	}
}

static void job_reap(struct job *j)
{
	int status;
	uint32_t out;

	if (waitpid(j->pid, &status, WNOHANG) != j->pid)
		return;
	job_drain(j, &j->out, 'O');
	job_drain(j, &j->err, 'E');
	out = (uint32_t)status;
	close_fd(&j->in);
	close_fd(&j->out);
	close_fd(&j->err);
	close_fd(&j->pidfd);
	j->pid = 0;
	frame_send('Z', j->id, &out, sizeof(out));
}

static void frame_recv(void)
{
	struct head h;
	char *data;
	struct job *j;

	read_all(port, &h, sizeof(h));
	if (h.len > (16u << 20)) {
		errno = EMSGSIZE;
		die("frame");
	}
	data = malloc(h.len + 1);
	if (!data)
		die("malloc");
	read_all(port, data, h.len);
	data[h.len] = 0;
	j = job_find(h.id);
	if (h.type == 'R' || h.type == 'S')
		job_start(h.id, data, h.type == 'S');
	else if (h.type == 'I' && j && h.len && j->in >= 0)
		write_all(j->in, data, h.len);
	else if (h.type == 'I' && j && !h.len)
		close_fd(&j->in);
	else if (h.type == 'K' && j && h.len == 4)
		kill(-j->pid, (int)*(uint32_t *)(void *)data);
	free(data);
}

static void poll_once(void)
{
	struct pollfd pfd[1 + 3 * JOBS_MAX];
	struct job *who[1 + 3 * JOBS_MAX];
	nfds_t n = 0;

	pfd[n++] = (struct pollfd){.fd = port, .events = POLLIN};
	for (int i = 0; i < JOBS_MAX; i++) {
		struct job *j = &jobs[i];
		const int fds[3] = {j->out, j->err, j->pidfd};

		for (int k = 0; j->pid && k < 3; k++) {
			who[n] = j;
			pfd[n++] = (struct pollfd){.fd = fds[k], .events = POLLIN};
		}
	}
	if (poll(pfd, n, -1) < 0)
		return;
	for (nfds_t i = 1; i < n; i += 3) {
		if (pfd[i].revents)
			job_drain(who[i], &who[i]->out, 'O');
		if (pfd[i + 1].revents)
			job_drain(who[i], &who[i]->err, 'E');
		if (pfd[i + 2].revents)
			job_reap(who[i]);
	}
	if (pfd[0].revents & POLLIN)
		frame_recv();
	else if (pfd[0].revents)
		usleep(20000); /* the lab has not opened its end yet */
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: rwy_agent PORT\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	port = open(argv[1], O_RDWR | O_CLOEXEC);
	if (port < 0)
		die(argv[1]);
	frame_send('H', 0, NULL, 0);
	for (;;)
		poll_once();
}
