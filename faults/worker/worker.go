package worker

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/faults/board"
	"github.com/latchkey-go/latchkey/faults/history"
	"github.com/latchkey-go/latchkey/faults/server"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// worker is the state of the process.
type worker struct {
	Setup
	log     *history.Log
	place   *board.Place
	known   map[string]sort
	rdbs    []redis.UniversalClient
	clients []*redisson.Client
	store   *redis.Client // of sets
	round   *round
	out     *json.Encoder
	writing sync.Mutex
}

// endTimeout is how long the goroutines and descriptors of closed clients may take to go.
const endTimeout = 5 * time.Second

const (
	watchInterval = 5 * time.Millisecond
	watchSlack    = 10 * time.Millisecond
)

// Serve is the worker: it follows the orders from in until that ends.
func Serve(s Setup, in io.Reader, out io.Writer) error {
	log, err := history.Create(s.Dir, s.Name)
	if err != nil {
		return err
	}
	page, err := board.Open(s.Board)
	if err != nil {
		return err
	}
	w := &worker{Setup: s, log: log, place: &page[s.Place], known: newSorts(), out: json.NewEncoder(out)}
	lines := bufio.NewScanner(in)
	go w.watch()
	goroutines, files := runtime.NumGoroutine(), descriptors()
	if err := w.open(); err != nil {
		return err
	}
	for lines.Scan() {
		var o Order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return fmt.Errorf("order %s: %w", lines.Bytes(), err)
		}
		if o.Do == "end" {
			err := w.close()
			w.leftover("goroutines", goroutines, runtime.NumGoroutine)
			w.leftover("file descriptors", files, descriptors)
			err = errors.Join(err, log.Close())
			w.reply("end", o.Round, err)
			return err
		}
		w.obey(o)
	}
	return lines.Err()
}

// watch notes when the machine was too busy to run the process: then its timers are late.
func (w *worker) watch() {
	for {
		due := history.Now() + int64(watchInterval)
		time.Sleep(watchInterval)
		if now := history.Now(); now-due > int64(watchSlack) {
			w.log.Note(history.Event{Op: history.Delayed, Since: due, At: now})
		}
	}
}

func (w *worker) open() error {
	for _, e := range w.Servers {
		rdb, err := w.dial(e)
		if err != nil {
			return err
		}
		c, err := redisson.New(rdb, redisson.WatchdogTimeout(w.Watchdog), redisson.Timeout(w.Timeout), redisson.FairLockWaitTimeout(w.FairWait))
		if err != nil {
			return err
		}
		w.rdbs, w.clients = append(w.rdbs, rdb), append(w.clients, c)
	}
	if w.Store != "" {
		o, err := redis.ParseURL(w.Store)
		if err != nil {
			return err
		}
		w.store = redis.NewClient(o)
	}
	return nil
}

// dial makes a client as redisson.Open does. The timeouts are shorter than the defaults, as the leases are.
func (w *worker) dial(e Endpoint) (redis.UniversalClient, error) {
	pool := w.Pool
	if pool == 0 {
		pool = 40
	}
	if len(e.Sentinels) > 0 {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: e.URL, SentinelAddrs: e.Sentinels, Username: server.User,
			Password: server.Password, ContextTimeoutEnabled: true, MaxRetries: -1, PoolSize: pool, DialTimeout: w.Timeout, DialerRetries: 1, Dialer: w.via(e)}), nil
	}
	if o, err := redis.ParseClusterURL(e.URL); err == nil && len(o.Addrs) > 1 {
		o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries, o.PoolSize, o.DialTimeout = true, -1, 1, pool, w.Timeout
		o.Dialer = w.via(e)
		return redis.NewClusterClient(o), nil
	}
	o, err := redis.ParseURL(e.URL)
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled, o.MaxRetries, o.PoolSize, o.DialTimeout = true, -1, pool, w.Timeout
	return redis.NewClient(o), nil
}

// via dials through the links of the worker.
func (w *worker) via(e Endpoint) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := net.Dialer{Timeout: w.Timeout}
		return d.DialContext(ctx, network, cmp.Or(e.Via[addr], addr))
	}
}

func (w *worker) close() (err error) {
	for i, c := range w.clients {
		err = errors.Join(err, c.Close(), w.rdbs[i].Close())
	}
	if w.store != nil {
		err = errors.Join(err, w.store.Close())
	}
	return err
}

func (w *worker) obey(o Order) {
	switch o.Do {
	case "round":
		w.round = newRound(w, o)
		w.round.start()
	case "heal":
		r := w.round
		close(r.healed)
		go func() {
			r.callers.Wait()
			w.reply("heal", o.Round, nil)
		}()
	case "burst":
		w.round.burst(o.Count)
	case "exhaust":
		w.round.exhaust(time.Duration(o.Count) * time.Millisecond)
	case "garbage":
		w.round.garbage(o.Count)
	}
}

func (w *worker) reply(do string, round int, err error) {
	r := Reply{Do: do, Round: round}
	if err != nil {
		r.Error = err.Error()
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	_ = w.out.Encode(r) // without a parent there is nobody to tell
}

// leftover notes what has not gone by itself after a while.
func (w *worker) leftover(what string, before int, count func() int) {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	for now := count(); now > before; now = count() {
		select {
		case <-ctx.Done():
			w.log.Note(history.Event{Op: history.Leftover, What: what, N: now - before, Error: stacks(what)})
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stacks says what the goroutines are that are left over.
func stacks(what string) string {
	if what != "goroutines" {
		return ""
	}
	buf := make([]byte, 8<<10)
	return string(buf[:runtime.Stack(buf, true)])
}

// descriptors counts the files and sockets that are open.
func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

func (w *worker) owner(caller int, program int64) string {
	return w.Name + "/" + strconv.Itoa(caller) + "/" + strconv.FormatInt(program, 10)
}
