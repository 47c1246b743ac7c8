package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
)

// service is a program with a guarded gin handler: one request at a time for each order.
type service struct {
	*locks
	server *http.Server
	ended  chan error
}

func newService(l *locks) (s *service, addr string, err error) {
	g, err := guard.New(l.client, guard.Name("order.settle"), guard.Key("order:#{path.id}"), guard.Wait(2*time.Second))
	if err != nil {
		return nil, "", err
	}
	guarded, err := ginguard.New(g)
	if err != nil {
		return nil, "", err
	}
	gin.SetMode(gin.ReleaseMode)
	s = &service{locks: l, ended: make(chan error, 1)}
	router := gin.New()
	router.POST("/orders/:id/settle", guarded, s.settle)
	s.server = &http.Server{Handler: router, ReadHeaderTimeout: 10 * time.Second}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	go func() { s.ended <- s.server.Serve(listener) }()
	return s, listener.Addr().String(), nil
}

// settle is the work under the lock.
func (s *service) settle(c *gin.Context) {
	id, err := strconv.Atoi(c.Param("id"))
	if err != nil || id < 0 || id >= len(s.inside) {
		c.Status(http.StatusNotFound)
		return
	}
	if s.inside.section(id, func() { time.Sleep(s.size.Work) }) {
		s.overlap()
	}
	c.String(http.StatusOK, "settled")
}

// run has nothing to do: the load comes from outside. Connections of a client that has closed them are gone soon.
func (s *service) run(d time.Duration) { time.Sleep(d) }

func (s *service) close() error {
	err := s.server.Shutdown(context.Background())
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return errors.Join(err, s.client.Close())
}

// inFlight bounds the requests of the generator that are not answered. Each has a connection.
const inFlight = 256

// generator makes requests at a steady rate to several services in turn, whether they answer soon or not, as long as there are not
// too many without an answer. A wait counts from the time at which its request was due.
type generator struct {
	counter
	addrs []string
	keys  int
}

func (g *generator) run(ctx context.Context, rate int, d time.Duration) (sent int) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: inFlight, MaxConnsPerHost: inFlight}, Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	free := make(chan struct{}, inFlight)
	var all sync.WaitGroup
	defer all.Wait()
	for start := time.Now(); ctx.Err() == nil; sent++ {
		due := start.Add(time.Duration(sent) * time.Second / time.Duration(rate))
		if due.Sub(start) >= d || time.Since(start) >= d {
			break
		}
		time.Sleep(time.Until(due))
		free <- struct{}{}
		n := sent
		all.Go(func() {
			g.request(client, n, due)
			<-free
		})
	}
	return sent
}

// request makes one. Two requests in a row have the same key, at two services.
func (g *generator) request(client *http.Client, n int, due time.Time) {
	url := fmt.Sprintf("http://%s/orders/%d/settle", g.addrs[n%len(g.addrs)], n/len(g.addrs)%g.keys)
	resp, err := client.Post(url, "text/plain", http.NoBody)
	if err != nil {
		g.failed(err)
		return
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	switch {
	case err != nil:
		g.failed(err)
	case resp.StatusCode == http.StatusOK:
		g.done(time.Since(due))
	case resp.StatusCode == http.StatusConflict:
		g.busy()
	default:
		g.failed(fmt.Errorf("status %s", resp.Status))
	}
}
