// SPDX-License-Identifier: GPL-2.0
/*
 * Run a shell command line on the other machine of the test.
 *
 * usage: peer-exec [-i] 'COMMAND LINE'
 *
 * Like "ssh -n OTHER 'COMMAND LINE'": output, errors and exit status are the
 * command's. -i passes standard input on. It speaks frames.py's frames with the
 * agent of this guest. In C because tests call it very often, and an interpreter
 * takes a second to start on an emulated machine.
 */

#include <arpa/inet.h>
#include <err.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define AGENT "/run/guest/peer"

enum { START = 1, STDIN, STDOUT, STDERR, EXIT };

struct header {
	uint32_t stream;
	uint8_t kind;
	uint32_t length;
} __attribute__((packed));

static int agent;

static void write_all(int fd, const char *data, size_t length)
{
	while (length) {
		ssize_t n = write(fd, data, length);

		if (n <= 0)
			err(125, "write");
		data += n;
		length -= n;
	}
}

static void read_all(char *data, size_t length)
{
	while (length) {
		ssize_t n = read(agent, data, length);

		if (n <= 0)
			errx(125, "the channel has closed");
		data += n;
		length -= n;
	}
}

static void send_frame(uint8_t kind, const char *payload, size_t length)
{
	struct header header = { 0, kind, htonl(length) };

	write_all(agent, (const char *)&header, sizeof(header));
	write_all(agent, payload, length);
}

/* {"argv": ["/bin/bash", "-c", COMMAND]}, with COMMAND as a JSON string. */
static void send_start(const char *command)
{
	static const char begin[] = "{\"argv\": [\"/bin/bash\", \"-c\", \"";
	size_t size = sizeof(begin) + 6 * strlen(command) + 4;
	char *json = malloc(size), *end;

	if (!json)
		err(125, "malloc");
	end = stpcpy(json, begin);
	for (; *command; command++) {
		unsigned char c = *command;

		if (c == '"' || c == '\\')
			end += sprintf(end, "\\%c", c);
		else if (c < ' ')
			end += sprintf(end, "\\u%04x", c);
		else
			*end++ = c;
	}
	end = stpcpy(end, "\"]}");
	send_frame(START, json, end - json);
	free(json);
}

static void receive_frame(void)
{
	struct header header;
	uint32_t length;
	char *payload;

	read_all((char *)&header, sizeof(header));
	length = ntohl(header.length);
	payload = malloc(length + 1);
	if (!payload)
		err(125, "malloc");
	read_all(payload, length);
	payload[length] = '\0';
	switch (header.kind) {
	case STDOUT:
		write_all(STDOUT_FILENO, payload, length);
		break;
	case STDERR:
		write_all(STDERR_FILENO, payload, length);
		break;
	case EXIT:
		/* {"status": N} */
		exit(atoi(strchr(payload, ':') + 1) & 255);
	}
	free(payload);
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = AGENT };
	struct pollfd polled[2] = { { .events = POLLIN }, { .fd = -1, .events = POLLIN } };

	if (argc == 3 && !strcmp(argv[1], "-i"))
		polled[1].fd = STDIN_FILENO;
	else if (argc != 2)
		errx(125, "usage: peer-exec [-i] 'COMMAND LINE'");
	agent = socket(AF_UNIX, SOCK_STREAM, 0);
	if (agent < 0 || connect(agent, (struct sockaddr *)&address, sizeof(address)))
		err(125, AGENT);
	polled[0].fd = agent;
	send_start(argv[argc - 1]);
	if (polled[1].fd < 0)
		send_frame(STDIN, NULL, 0);
	for (;;) {
		if (poll(polled, 2, -1) < 0)
			err(125, "poll");
		if (polled[0].revents)
			receive_frame();
		if (polled[1].revents) {
			char data[65536];
			ssize_t n = read(STDIN_FILENO, data, sizeof(data));

			send_frame(STDIN, data, n > 0 ? n : 0);
			if (n <= 0)
				polled[1].fd = -1;
		}
	}
}
