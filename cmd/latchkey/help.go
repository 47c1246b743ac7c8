package main

const runHelp = `Take the lock KEY, run COMMAND, and give the lock back when it has ended.

COMMAND runs in a process group of its own. It has our standard input and output, and the terminal when it wants it.
Signals that we get are passed on to the group. In its environment are

  LATCHKEY_KEY     the key
  LATCHKEY_TOKEN   with --kind fenced, a number that is greater than those of all earlier holders
  LATCHKEY_HELD    this lock and those of the runs around it, by which a run refuses to wait for itself

The lock is renewed for as long as COMMAND runs. If it is lost, because Redis is gone for too long, somebody freed it by hand,
or --max-hold or --lease is over, the group gets SIGTERM, and SIGKILL if it is still there after --grace. If we are killed,
the kernel and a second process of ours kill the group; the lock ends with its lease (--watchdog).

The lock is for COMMAND and not for what it leaves in the background. A COMMAND that takes the same lock again is refused.

With --hold, the lock stays after a COMMAND that succeeded, until so long after it was taken. For a job that runs every 15
minutes, --hold 14m has other hosts find the lock held, also if their clocks are late. After a failure, the lock is free at once.

Exit status:

  that of COMMAND     it has run, and the lock was held to its end
  128 and a number    COMMAND was ended by that signal, or we were while we waited, and COMMAND has not run
  64                  a mistake in the arguments; COMMAND has not run
  69                  no answer from Redis; COMMAND has not run
  75                  others have the lock (--busy-exit, --skip-ok); COMMAND has not run
  76                  the lock was lost while COMMAND ran; it was ended, and others may have run beside it
  77                  Redis refuses: no permission, wrong password, or the key is that of something else; COMMAND has not run
  124                 COMMAND was ended because of --max-hold
  126, 127            COMMAND can't be executed, or was not found`

const leadHelp = `Run COMMAND while this process is the leader: the one of all that lead with KEY which has its lock. The others wait for it.

COMMAND runs as under latchkey run, with a fenced lock: LATCHKEY_TOKEN is greater than those of all leaders before. guard.Lead of a
fenced guard with this key, in Go, stands for the same lead.

When COMMAND succeeds, so do we, and another one leads. When it fails, loses the lock, or reaches --max-hold, and while Redis does not answer,
we stand again, and COMMAND is started anew when we lead again. Before that is a pause of up to 250ms, doubled each time up to 8s, and anew
after 30s of work or waiting. A signal that ends processes is passed on to COMMAND, and its end is then ours.

Exit status: 0 when COMMAND has succeeded; those of run after such a signal, and where trying again can't help: 64, 77, 126, 127.`
