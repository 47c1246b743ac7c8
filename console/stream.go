package console

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	mostStreams   = 64               // at once, of all pages; one more shows its page without a live view
	streamBeat    = 15 * time.Second // between signs of life, so that a client that has gone is noticed
	streamTimeout = 10 * time.Second // for a client to take its events
	streamLife    = 5 * time.Minute  // then the browser comes again, and authorizes itself anew
)

// streams counts those that are open.
type streams struct {
	mu sync.Mutex
	n  int
}

func (s *streams) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == mostStreams {
		return false
	}
	s.n++
	return true
}

func (s *streams) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n--
}

// events sends the part of a page that changes, whenever it does, until the client leaves or the server shuts down.
func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	source, err := h.source(r)
	if err != nil {
		h.wrongLink(w, err)
		return
	}
	if r.Method == http.MethodHead {
		return
	}
	if !h.streams.enter() {
		http.Error(w, "too many live views are open", http.StatusServiceUnavailable)
		return
	}
	defer h.streams.leave()
	ctx, cancel := context.WithTimeout(r.Context(), streamLife)
	defer cancel()
	defer context.AfterFunc(h.untilShutdown(r), cancel)()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	s := &stream{w: w, control: http.NewResponseController(w)}
	if s.send("retry: 1000\n\n") == nil {
		source(ctx, s)
	}
}

// source says how a stream is filled: by its page.
func (h *handler) source(r *http.Request) (func(context.Context, *stream), error) {
	switch r.URL.Query().Get("of") {
	case "guards":
		maySwitch := h.allowSwitch(r) == nil
		return func(ctx context.Context, s *stream) {
			ticker := time.NewTicker(guardsRest)
			defer ticker.Stop()
			for s.update(h.fragment("guards-live", h.guardsBody(maySwitch))) == nil {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
			}
		}, nil
	case "lock":
		key, err := h.keyOf(r.URL.Query().Get)
		if err != nil {
			return nil, err
		}
		mayFree := h.mayFree(r) == nil
		return func(ctx context.Context, s *stream) {
			f := h.lockFeed(key)
			follow(ctx, s, f, f, func(state *lockState) []byte {
				return h.fragment("lock-live", h.lockBody(key, state, mayFree))
			})
		}, nil
	}
	q := readListQuery(r)
	return func(ctx context.Context, s *stream) {
		f := h.ask(q.text)
		follow(ctx, s, h.list, f, func(state *listState) []byte {
			asked, _, _ := f.look()
			return h.fragment("list-live", h.listBody(q, state, asked))
		})
	}, nil
}

// follow sends each state of a feed, and of one beside it, which can be the same.
func follow[T, B any](ctx context.Context, s *stream, f *feed[T], beside *feed[B], fragment func(T) []byte) {
	defer f.enter()()
	defer beside.enter()()
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	sent := 0
	for {
		state, version, changed := f.look()
		_, more, also := beside.look()
		if version += more; version > sent {
			sent = version
			if s.update(fragment(state)) != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-also:
		case <-beat.C:
			if s.send(": \n\n") != nil {
				return
			}
		}
	}
}

// stream is server-sent events to one client.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	last    []byte
}

// update sends a part of a page, unless the client has it.
func (s *stream) update(fragment []byte) error {
	if bytes.Equal(fragment, s.last) {
		return nil
	}
	s.last = fragment
	var b bytes.Buffer
	for line := range bytes.SplitSeq(bytes.ReplaceAll(fragment, []byte("\r"), nil), []byte("\n")) {
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return s.send(b.String())
}

// send writes text and has it leave. A server's own timeouts are meant for answers that end.
func (s *stream) send(text string) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(streamTimeout)) // where there is one
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

// untilShutdown is a context that ends when r's server shuts down, which would otherwise wait for its streams.
func (h *handler) untilShutdown(r *http.Request) context.Context {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok {
		return h.ending
	}
	if _, known := h.servers.LoadOrStore(server, true); !known {
		server.RegisterOnShutdown(h.end)
	}
	return h.ending
}
