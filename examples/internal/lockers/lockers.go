// Package lockers opens the lock service that an example is run with.
package lockers

import (
	"flag"
	"fmt"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/redisson"
)

// Open reads the flag -redis from args, the URL of a Redis such as redis://localhost:6379. Without it the locks are those of
// this process, so that an example runs with nothing installed. Call done at the end of the program.
func Open(name string, args []string) (locker lock.Locker, done func() error, err error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	url := flags.String("redis", "", "`URL` of a Redis, redis://host:port (default: locks within this process)")
	if err := flags.Parse(args); err != nil {
		return nil, nil, err
	}
	if flags.NArg() > 0 {
		return nil, nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *url == "" {
		return memlock.New(), func() error { return nil }, nil
	}
	client, err := redisson.Open(*url)
	if err != nil {
		return nil, nil, err
	}
	return client, client.Close, nil
}
