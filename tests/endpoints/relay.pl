# Relays the lines between hopyard and a worker. In one session, at the first line that is the message of a kind, it does something
# else: ends, halves it, waits for 10 s, or passes it on twice.
use strict;
use warnings;
use IPC::Open2;
use IO::Select;

my ($sessions, $session, $way, $kind, $act, @command) = @ARGV;

# How many sessions there have been is the number of lines in a file.
open(my $began, '>>', $sessions) or die "$sessions: $!";
syswrite($began, "began\n");
my $number = (-s $began) / length("began\n");
my $is_armed = $number == $session;

my $pid = open2(my $from, my $to, @command);
my %ways = (fileno(STDIN) => ['to', $to, 'do', ''], fileno($from) => ['from', \*STDOUT, 'is', '']);
my $all = IO::Select->new(\*STDIN, $from);
while (1) {
	for my $in ($all->can_read) {
		my $of = $ways{fileno($in)};
		my ($name, $out, $tag) = @$of;
		# The end of either is the end of both.
		exit 0 unless sysread($in, $of->[3], 65536, length($of->[3]));
		while ($of->[3] =~ s/^(.*?\n)//s) {
			my $line = $1;
			if ($is_armed && $name eq $way && $line =~ /"$tag":"$kind"/) {
				$is_armed = 0;
				exit 0 if $act eq 'close';
				$line = substr($line, 0, length($line) / 2) . "\n" if $act eq 'half';
				$line .= $line if $act eq 'double';
				select(undef, undef, undef, 10) if $act eq 'delay';
			}
			for (my $done = 0; $done < length($line);) {
				$done += syswrite($out, $line, length($line) - $done, $done) // exit 0;
			}
		}
	}
}
