// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Times first packets, knowing nothing of hopyard and measuring nothing else.
 *
 * reference server tcp|udp HOST PORT           answers until it is ended; prints "ready"
 * reference client tcp|udp HOST PORT COUNT     prints the median time in ns
 *
 * tcp: from before connect() to its return, of COUNT connections one after the other; each asks for a byte and is closed by the server.
 * udp: from before the first datagram of a fresh socket to its answer, of COUNT sockets one after the other.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int open_socket(int tcp)
{
	int one = 1, fd = socket(AF_INET, tcp ? SOCK_STREAM : SOCK_DGRAM, 0);

	must(fd >= 0, "socket");
	if (tcp)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void serve(int tcp, struct sockaddr_in *own)
{
	char byte[16];
	int fd = open_socket(tcp);

	must(!bind(fd, (struct sockaddr *)own, sizeof(*own)), "bind");
	must(!tcp || !listen(fd, 64), "listen");
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct sockaddr_in from;
		socklen_t size = sizeof(from);

		if (tcp) {
			int peer = accept(fd, NULL, NULL);

			must(peer >= 0, "accept");
			if (recv(peer, byte, 1, 0) == 1)
				send(peer, byte, 1, MSG_NOSIGNAL);
			close(peer);
			continue;
		}
		must(recvfrom(fd, byte, sizeof(byte), 0, (struct sockaddr *)&from, &size) >= 0, "recvfrom");
		sendto(fd, "answered", 8, 0, (struct sockaddr *)&from, size);
	}
}

static uint64_t once(int tcp, struct sockaddr_in *server)
{
	char byte[16] = "x";
	int fd = open_socket(tcp);
	uint64_t began, took;

	if (tcp) {
		began = now();
		must(!connect(fd, (struct sockaddr *)server, sizeof(*server)), "connect");
		took = now() - began;
		must(send(fd, byte, 1, 0) == 1, "send");
		while (recv(fd, byte, 1, 0) > 0)
			;
	} else {
		must(!connect(fd, (struct sockaddr *)server, sizeof(*server)), "connect");
		began = now();
		must(send(fd, "question", 8, 0) == 8, "send");
		must(recv(fd, byte, sizeof(byte), 0) == 8, "recv");
		took = now() - began;
	}
	close(fd);
	return took;
}

static int by_size(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return (a > b) - (a < b);
}

int main(int count_of_words, char **words)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	uint64_t *times;
	int tcp, count;

	if (count_of_words < 5)
		return 2;
	tcp = !strcmp(words[2], "tcp");
	address.sin_port = htons(atoi(words[4]));
	must(inet_pton(AF_INET, words[3], &address.sin_addr) == 1, "inet_pton");
	if (!strcmp(words[1], "server"))
		serve(tcp, &address);
	count = atoi(words[5]);
	times = calloc(count, sizeof(*times));
	for (int i = 0; i < count; i++)
		times[i] = once(tcp, &address);
	qsort(times, count, sizeof(*times), by_size);
	printf("%llu\n", (unsigned long long)times[count / 2]);
	return 0;
}
