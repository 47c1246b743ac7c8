package play

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// role is the description of a process for itself, as JSON in this variable of its environment.
type role struct {
	Servers []string // of the lock
	Store   string
	Lease   time.Duration
	Ahead   time.Duration // of the true time
}

const roleVariable = "EVOLUTION_ROLE"

// The operations of a process, which are also its orders, a line each.
const (
	opLock   = "lock"
	opUnlock = "unlock"
	opRead   = "read"  // the store
	opWrite  = "write" // one more than was read

	inside = "inside" // asks whether it believes that it holds the lock
	shut   = "shut"   // and a point: holds the next operation there
	pass   = "pass"   // lets it go on
)

// The answers of a process, a line each: yes, no with a reason, or that it can't go on. When it is held it says so.
const (
	yes    = "yes"
	no     = "no"
	failed = "failed"
	held   = "held"
)

// ActIfActor does not return in a process that a stage has started: it plays its part and exits. Elsewhere it does nothing.
func ActIfActor(step Step) {
	text, ok := os.LookupEnv(roleVariable)
	if !ok {
		return
	}
	logging.Disable() // a server that is restarted is part of the play
	// The stage ends a process by the end of its input, or kills it.
	if err := act(step, text, os.Stdin, log.New(os.Stdout, "", 0)); err != nil {
		fmt.Println(failed, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// part is a process of a play, seen from inside.
type part struct {
	locker Locker
	locked bool
	store  Store
	number int64            // what it has read
	gates  map[string]*gate // by the operation that is held there
}

func act(step Step, text string, in io.Reader, out *log.Logger) error {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	passed := make(chan struct{})
	reached := func() { out.Println(held) }
	locks, stores := &gate{reached: reached, pass: passed}, &gate{reached: reached, pass: passed}
	s := Setting{Lease: r.Lease, Now: func() time.Time { return time.Now().Add(r.Ahead) }}
	for _, addr := range r.Servers {
		rdb := locks.client(addr)
		if err := rdb.Ping(context.Background()).Err(); err != nil { // with a connection, a short lease goes further
			return err
		}
		s.Redis = append(s.Redis, rdb)
	}
	locker, err := step.New(s)
	if err != nil {
		return err
	}
	p := &part{locker: locker, gates: map[string]*gate{opLock: locks, opUnlock: locks, opWrite: stores}}
	if p.store = (openStore{stores.client(r.Store)}); step.Store != nil {
		p.store = step.Store(stores.client(r.Store), locker)
	}
	orders := make(chan string)
	go read(in, orders, passed)
	for order := range orders {
		out.Println(p.do(order))
	}
	return nil
}

// read passes orders on. That to go on comes while another one is being carried out.
func read(in io.Reader, orders chan<- string, passed chan<- struct{}) {
	defer close(orders)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if lines.Text() == pass {
			passed <- struct{}{}
		} else {
			orders <- lines.Text()
		}
	}
}

func (p *part) do(order string) (answer string) {
	ctx := context.Background()
	verb, rest, _ := strings.Cut(order, " ")
	switch verb {
	case opLock:
		return p.lock(ctx)
	case opUnlock:
		p.locked = false
		if err := p.locker.Unlock(ctx); err != nil {
			return fmt.Sprint(no, " ", err)
		}
	case opRead, opWrite:
		return p.work(verb)
	case inside:
		if !p.locked || p.held().Err() != nil {
			return no
		}
	case shut:
		at, err := parsePoint(rest)
		if err != nil {
			return fmt.Sprint(failed, " ", err)
		}
		p.gates[at.op].shut(at)
	default:
		return fmt.Sprintf("%s no such order: %q", failed, order)
	}
	return yes
}

func (p *part) lock(ctx context.Context) (answer string) {
	ok, err := p.locker.TryLock(ctx)
	switch {
	case err != nil:
		return fmt.Sprint(no, " ", err)
	case !ok:
		return no
	}
	p.locked = true
	return yes
}

// held is the context to work under: it ends with the lock if somebody tells.
func (p *part) held() context.Context {
	if n, ok := p.locker.(Notifier); ok {
		return n.Held()
	}
	return context.Background()
}

// work asks the store under the lock's context, so that a loss that was noticed ends it.
func (p *part) work(verb string) (answer string) {
	ctx := p.held()
	var err error
	if verb == opRead {
		p.number, err = p.store.Read(ctx)
	} else {
		err = p.store.Write(ctx, p.number+1)
	}
	switch {
	case err == nil:
		return yes
	case errors.Is(err, ErrRefused), ctx.Err() != nil:
		return fmt.Sprint(no, " ", err)
	}
	return fmt.Sprint(failed, " ", err)
}
