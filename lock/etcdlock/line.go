package etcdlock

import (
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/latchkey-go/latchkey/lock"
)

// A lock is a line of keys, ordered by their create revision:
//
//	<prefix><key>/<name>    with the value "latchkey <kind>" or "latchkey permit <limit>"
//
// Etcd's own Mutex stands in the same line, with its lease as the name and with any other value; that counts as Exclusive. A name has
// no slash, so what is under <key>/<more>/ belongs to other locks, whose keys begin with this one.
//
// The names of readers sort behind all others. So a reader, who only has to know who ahead of it is no reader, need not read the names of
// all readers.
const (
	slash      = "/"
	afterSlash = "0" // the byte behind it
	reader     = "~"
	mark       = "latchkey "
)

// place is where the keys of one lock are.
type place struct{ dir, end, readers string }

func (s *store) place(key string) place {
	key = s.prefix + key
	return place{dir: key + slash, end: key + afterSlash, readers: key + slash + reader}
}

// nameOf returns the name of the entry with this ID in the line.
func nameOf(kind lock.Kind, id string) string {
	if kind == lock.Read {
		return reader + id
	}
	return id
}

// valueOf returns the value of an entry of that kind and limit.
func valueOf(kind lock.Kind, limit int) string {
	if kind == lock.Permit {
		return fmt.Sprintf("%s%v %d", mark, kind, limit)
	}
	return mark + kind.String()
}

// spot is one entry in the line.
type spot struct {
	name     string
	kind     lock.Kind
	limit    int
	created  int64
	modified int64
}

// parseValue undoes valueOf. It returns Exclusive for a value that somebody else has written.
func parseValue(value string) (kind lock.Kind, limit int) {
	text, ours := strings.CutPrefix(value, mark)
	name, number, _ := strings.Cut(text, " ")
	if !ours || kind.UnmarshalText([]byte(name)) != nil {
		return lock.Exclusive, 0
	}
	if kind == lock.Permit {
		limit, _ = strconv.Atoi(number)
	}
	return kind, limit
}

// spots returns the entries among kvs. A key without a lease is none: it would never end.
func (p place) spots(kvs []*mvccpb.KeyValue) ([]spot, error) {
	var found []spot
	for _, kv := range kvs {
		name := strings.TrimPrefix(string(kv.Key), p.dir)
		if strings.Contains(name, slash) {
			continue
		}
		if kv.Lease == 0 {
			return nil, fmt.Errorf("%w: etcd has a key without a lease in the place of this lock's entries, so it is no lock's: "+
				"remove it, or set Prefix to where no other program writes", lock.ErrRefused)
		}
		s := spot{name: name, created: kv.CreateRevision, modified: kv.ModRevision}
		s.kind, s.limit = parseValue(string(kv.Value))
		found = append(found, s)
	}
	return found, nil
}

// firstPage is how many keys are read at first. Only where the keys of other locks are below those of this one are there more pages.
const firstPage = 4

// mostPermits bounds the first page for a permit.
const mostPermits = 10_000

// view is a line as one transaction has read it.
type view struct {
	rev    int64
	own    *spot
	oldest []spot // those at the head, in order, as many as the kind needs
	whole  bool   // there are no others
	// nearest are those that can be in the way of a kind other than Permit, youngest first, own not among them.
	nearest []spot
	reached bool // there are no others that are older
}

// reads returns the operations that read the line for an entry of that kind and limit, with pages that are so long.
func (p place) reads(own string, kind lock.Kind, limit, page int) []clientv3.Op {
	head := page
	if kind == lock.Permit {
		head += min(limit, mostPermits)
	}
	end := p.end
	if kind == lock.Read {
		end = p.readers
	}
	return []clientv3.Op{
		clientv3.OpGet(p.dir + own),
		clientv3.OpGet(p.dir, clientv3.WithRange(p.end), clientv3.WithLimit(int64(head)),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)),
		clientv3.OpGet(p.dir, clientv3.WithRange(end), clientv3.WithLimit(int64(page)),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend)),
	}
}

// view makes one of the answers to reads, which are the last three.
func (p place) view(resp *clientv3.TxnResponse) (*view, error) {
	answers := resp.Responses[len(resp.Responses)-3:]
	v := &view{rev: resp.Header.Revision}
	mine, err := p.spots(answers[0].GetResponseRange().Kvs)
	if err != nil {
		return nil, err
	}
	if len(mine) == 1 {
		v.own = &mine[0]
	}
	head, tail := answers[1].GetResponseRange(), answers[2].GetResponseRange()
	if v.oldest, err = p.spots(head.Kvs); err != nil {
		return nil, err
	}
	if v.nearest, err = p.spots(tail.Kvs); err != nil {
		return nil, err
	}
	v.whole, v.reached = !head.More, !tail.More
	return v, nil
}

// verdict is the state of an entry in a view.
type verdict struct {
	held    bool
	unclear bool      // the pages were too short to know
	refused lock.Kind // of another family, if mixed
	mixed   bool
	behind  string // the name of the entry that has to go or to change first; none for a Permit
}

// judge returns whether the entry of that kind and limit holds the lock: at its place if it is in the line, and behind all if it is not.
func (v *view) judge(kind lock.Kind, limit int) verdict {
	created := int64(1<<63 - 1)
	if v.own != nil {
		created = v.own.created
	}
	if len(v.oldest) == 0 && !v.whole {
		return verdict{unclear: true}
	}
	if len(v.oldest) > 0 {
		first := v.oldest[0]
		switch {
		case first.created == created:
			return verdict{held: true}
		case first.kind.Family() != kind.Family():
			return verdict{mixed: true, refused: first.kind}
		}
	}
	if kind == lock.Permit {
		return v.judgePermit(created, limit)
	}
	for _, s := range v.nearest {
		if s.created < created && (kind != lock.Read || s.kind != lock.Read) {
			return verdict{behind: s.name}
		}
	}
	return verdict{held: v.reached, unclear: !v.reached}
}

// judgePermit lets the first in line have permits, each as long as there are fewer ahead of it than its limit says, and nobody who
// is ahead waits.
func (v *view) judgePermit(created int64, limit int) verdict {
	n := 0
	for _, s := range v.oldest {
		switch {
		case s.created >= created:
			return verdict{held: n < limit}
		case n >= s.limit, n+1 >= limit:
			return verdict{}
		}
		n++
	}
	return verdict{held: v.whole && n < limit, unclear: !v.whole}
}
