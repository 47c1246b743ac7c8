package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// worker is one peer in a process of its own. It does the jobs on its standard input until that ends, so a worker whose
// parent is gone goes, too.
type worker struct {
	who   contestant
	peers map[string]peer // by address
	holds []held
}

// jobs are all that a worker can do.
var jobs = map[string]func(*worker, context.Context, job) (result, error){
	"load":     (*worker).load,
	"turns":    (*worker).turns,
	"hold":     (*worker).hold,
	"keys":     (*worker).keys,
	"guard":    (*worker).guard,
	"reentry":  (*worker).reentry,
	"http":     (*worker).http,
	"grpc":     (*worker).grpc,
	"together": (*worker).together,
}

func serve(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	who, err := find(name)
	if err != nil {
		return err
	}
	w := &worker{who: who, peers: map[string]peer{}}
	answers := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var j job
		if err := json.Unmarshal(lines.Bytes(), &j); err != nil {
			return fmt.Errorf("job %s: %w", lines.Bytes(), err)
		}
		r, err := w.do(ctx, j)
		if err != nil {
			r.Error = err.Error()
		}
		if err := answers.Encode(r); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (w *worker) do(ctx context.Context, j job) (result, error) {
	run, ok := jobs[j.Do]
	if !ok {
		return result{}, fmt.Errorf("no job is called %q", j.Do)
	}
	return run(w, ctx, j)
}

// peer returns the worker's peer on that address, which it opens once.
func (w *worker) peer(addr string) (peer, error) {
	if p, ok := w.peers[addr]; ok {
		return p, nil
	}
	p, err := w.who.open(addr)
	if err != nil {
		return nil, err
	}
	w.peers[addr] = p
	return p, nil
}

func (w *worker) load(ctx context.Context, j job) (result, error) {
	peers := make([]peer, max(j.Clients, 1))
	for i := range peers {
		var err error
		if j.Clients == 0 {
			peers[i], err = w.peer(j.Addr)
		} else {
			peers[i], err = w.who.open(j.Addr)
		}
		if err != nil {
			return result{}, err
		}
	}
	for i, p := range peers {
		if own, ok := p.(latchkey); ok && j.Limit > 0 {
			own.limit = j.Limit
			peers[i] = own
		}
	}
	if j.Clients > 0 {
		defer closeAll(peers)
	}
	runtime.GC() // of what earlier jobs have left
	return load(ctx, peers, j)
}

func closeAll(peers []peer) {
	var all sync.WaitGroup
	for _, p := range peers {
		all.Go(func() { _ = p.Close() })
	}
	all.Wait()
}

func (w *worker) turns(ctx context.Context, j job) (result, error) {
	p, err := w.peer(j.Addr)
	if err != nil {
		return result{}, err
	}
	return turns(ctx, p, j)
}

// hold takes locks and keeps them until the process ends. It measures what each costs in memory.
func (w *worker) hold(ctx context.Context, j job) (result, error) {
	p, err := w.peer(j.Addr)
	if err != nil {
		return result{}, err
	}
	if err := pair(ctx, p, j.Key); err != nil { // opens a connection, loads scripts
		return result{}, err
	}
	return w.holdAll(ctx, p, j)
}
