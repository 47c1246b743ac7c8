package redistest

import (
	"context"
	"fmt"
	"testing"
)

// fillText makes keys of somebody else: of all types, and one sort of hashes has a field as rate limiters have it. It is no redis.Script, which
// would compute a SHA-1 when the tests start: one of them runs where that is forbidden.
const fillText = `
for i = tonumber(ARGV[2]), ARGV[3] - 1 do
  local key, sort = 'other:' .. ARGV[1] .. i, i % 6
  if sort == 0 then
    redis.call('hset', key, 'name', 'x', 'mail', 'y')
  elseif sort == 1 then
    redis.call('hset', key, 'name', 'x', 'type', 'y')
  elseif sort == 2 then
    redis.call('zadd', key .. ':timeout', 1, 'm')
  elseif sort == 3 then
    redis.call('rpush', key, 1)
  else
    redis.call('set', key, i)
  end
end
return redis.status_reply('OK')`

// Fill makes n keys of somebody else.
func (s *Server) Fill(tb testing.TB, n int) {
	tb.Helper()
	s.fill(tb, n, "")
}

func (s *Server) fill(tb testing.TB, n int, tag string) {
	tb.Helper()
	const step = 10_000
	rdb := s.Client(tb)
	for from := 0; from < n; from += step {
		if err := rdb.Eval(context.Background(), fillText, []string{"other:" + tag}, tag, from, min(n, from+step)).Err(); err != nil {
			tb.Fatalf("redistest: fill %s: %v", s.Addr, err)
		}
	}
}

// Fill makes n keys of somebody else, as many at each master.
func (c *Cluster) Fill(tb testing.TB, n int) {
	tb.Helper()
	filled := map[int]bool{}
	for i := 0; len(filled) < len(c.Masters); i++ {
		tag := fmt.Sprintf("{%d}", i)
		at, _ := c.Owner(tb, tag)
		if filled[at] {
			continue
		}
		filled[at] = true
		c.Masters[at].fill(tb, n/len(c.Masters), tag)
	}
}
