package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// Who has freed a lock, and why, gets to the holder, in the same process and in others, and stays to be read.
func TestFreeSaysWhoAndWhy(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, operator := newClient(t, s), newClient(t, s)
	for _, by := range []*redisson.Client{operator, c} {
		for _, f := range []redisson.Freed{{Who: "ann", Reason: "it hangs, ticket 7"}, {Reason: "зависло"}, {Who: "ann"}, {}} {
			f.Key = "order:7"
			h := acquire(t.Context(), t, c, lock.Request{Key: f.Key})
			hears(t, c)
			if ok, err := by.Free(t.Context(), f); !ok || err != nil {
				t.Fatalf("Free = %v, %v", ok, err)
			}
			cause := awaitEnd(t, h.Context(), 5*time.Second)
			want := "freed by hand"
			switch {
			case f.Who != "" && f.Reason != "":
				want += " (ann: it hangs, ticket 7)"
			case f.Who+f.Reason != "":
				want += " (" + f.Who + f.Reason + ")"
			}
			if !errors.Is(cause, redisson.ErrForced) || !strings.HasSuffix(cause.Error(), want) {
				t.Errorf("the cause is %v, want %q at its end", cause, want)
			}
		}
	}
	frees, err := operator.Frees(t.Context(), 2)
	check(t, err)
	if len(frees) != 2 || frees[0].Who != "ann" || frees[1].Reason != "зависло" || frees[0].Key != "order:7" || len(frees[0].Holders) != 1 ||
		time.Since(frees[0].Time) > time.Minute || frees[0].Time.Before(frees[1].Time) {
		t.Errorf("the last are %+v", frees)
	}
	if frees, err = operator.Frees(t.Context(), 100); len(frees) != 6 || err != nil {
		t.Errorf("there are %d, %v", len(frees), err)
	}
}

// What was not freed is not noted, and what can't be noted is freed.
func TestFreeNotesWhatWasFreed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, rdb := newClient(t, s), s.Client(t)
	f := redisson.Freed{Key: "k", Who: "ann", Reason: "why"}
	if ok, err := c.Free(t.Context(), f); ok || err != nil {
		t.Errorf("Free of a free lock = %v, %v", ok, err)
	}
	acquire(t.Context(), t, c, lock.Request{Key: "k"})
	for _, wrong := range []redisson.Freed{{Key: "k", Who: "a\nb"}, {Key: "k", Reason: "\xff"}, {Key: "k", Reason: strings.Repeat("x", 1025)}, {Who: "no key"}} {
		if ok, err := c.Free(t.Context(), wrong); ok || err == nil {
			t.Errorf("Free(%+v) = %v, %v", wrong, ok, err)
		}
	}
	f.Holders = []string{"somebody else"}
	if ok, err := c.Free(t.Context(), f); ok || !errors.Is(err, lock.ErrBusy) {
		t.Errorf("Free from others = %v, %v", ok, err)
	}
	if n := rdb.Exists(t.Context(), "latchkey_frees").Val(); n > 0 {
		t.Error("something is noted")
	}
	check(t, rdb.Set(t.Context(), "latchkey_frees", "a stranger's", 0).Err())
	f.Holders = nil
	if ok, err := c.Free(t.Context(), f); !ok || err == nil || inspect(t, c, "k").Type != redisson.TypeNone {
		t.Errorf("Free = %v, %v", ok, err)
	}
	check(t, rdb.Del(t.Context(), "latchkey_frees").Err())
	for _, garbage := range [][]any{{"freed", "{"}, {"freed", `{"key":"k"}`, "more", "x"}, {"freed", "7"}} {
		check(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: "latchkey_frees", Values: garbage}).Err())
	}
	for _, n := range []int{0, -1} {
		if frees, err := c.Frees(t.Context(), n); len(frees) > 0 || err != nil {
			t.Errorf("the last %d are %+v, %v", n, frees, err)
		}
	}
	if frees, err := c.Frees(t.Context(), 10); len(frees) > 0 || err != nil {
		t.Errorf("of garbage: %+v, %v", frees, err)
	}
}

// The rights beside those of the lines that they add to.
func TestACLLinesOfFrees(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"force", "inspect", "lock"} {
		more, both := aclAddition(t, user, "~latchkey_frees")
		for _, word := range append([]string{"nothing"}, more.words...) {
			s := redistest.Start(t)
			admin := s.Client(t)
			setUser(t, func(args ...any) error { return admin.Do(t.Context(), args...).Err() }, strings.Join(aclLine{words: both}.without(word), " "))
			login := func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }
			c, stock := onClient(t, s.Client(t, login)), newClient(t, s)
			holder := map[bool]*redisson.Client{true: c, false: stock}[user == "lock"]
			h := acquire(t.Context(), t, holder, lock.Request{Key: aclName})
			hears(t, holder)
			f := redisson.Freed{Key: aclName, Who: "ann"}
			_, err := map[bool]*redisson.Client{true: c, false: stock}[user == "force"].Free(t.Context(), f)
			switch user {
			case "inspect":
				_, err = c.Frees(t.Context(), 1)
			case "lock":
				if check(t, err); !strings.Contains(awaitEnd(t, h.Context(), 5*time.Second).Error(), "(ann)") {
					err = errors.New("no reason")
				}
			}
			if (err != nil) != (word != "nothing") {
				t.Errorf("%s without %s: %v", user, word, err)
			}
		}
	}
}

// A lock that is held by hand outlives its client, says for whom, and is freed like any other.
func TestHoldByHand(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, operator := newClient(t, s), newClient(t, s)
	check(t, operator.Hold(t.Context(), "order:7", time.Hour, "ann", "100% new disks, до 5"))
	check(t, operator.Close())
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Fair, lock.Fenced, lock.Spin, lock.Exclusive} {
		eventually(t, fmt.Sprint(kind, " is told by whom it is held"), func() bool { // a busy machine may not answer in time
			_, err := c.Acquire(t.Context(), lock.Request{Key: "order:7", Kind: kind})
			return errors.Is(err, lock.ErrBusy) && strings.HasSuffix(err.Error(), ": held by ann: 100% new disks, до 5")
		})
	}
	o := inspect(t, c, "order:7")
	if h := o.Holders[0]; h.About == nil || h.About.For != "ann: 100% new disks, до 5" || h.Client != operator.ID() || o.TTL < 59*time.Minute {
		t.Errorf("it is %+v", o)
	}
	if err := c.Hold(t.Context(), "order:7", time.Hour, "bob", ""); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("a second Hold = %v", err)
	}
	for o, err := range c.Objects(t.Context(), "") {
		if check(t, err); o.Key != "order:7" {
			t.Errorf("found %+v", o)
		}
	}
	if ok, err := c.Free(t.Context(), redisson.Freed{Key: "order:7", Holders: []string{o.Holders[0].ID}, Who: "bob"}); !ok || err != nil {
		t.Errorf("Free = %v, %v", ok, err)
	}
	for _, wrong := range []string{"a\nb", "\xff", strings.Repeat("x", 200)} {
		if err := c.Hold(t.Context(), "order:7", time.Hour, "ann", wrong); err == nil || errors.Is(err, lock.ErrBusy) {
			t.Errorf("Hold for %q = %v", wrong, err)
		}
	}
	if err := c.Hold(t.Context(), "order:7", 0, "ann", "ever"); err == nil {
		t.Error("a Hold without an end is taken")
	}
	if o := inspect(t, c, "order:7"); o.Type != redisson.TypeNone {
		t.Errorf("there is %+v", o)
	}
}

// A lease that is long, and of a program, is asked about once a second, and says nothing.
func TestLongLeasesOfProgramsCostNoMore(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b, rdb := newClient(t, s), newClient(t, s), s.Client(t)
	acquire(t.Context(), t, a, lock.Request{Key: "k", Lease: time.Hour})
	before, _ := commands(t, rdb)
	start := time.Now()
	const tries = 300
	for range tries {
		if err := second(b.Acquire(t.Context(), lock.Request{Key: "k"})); !errors.Is(err, lock.ErrBusy) || strings.Contains(err.Error(), "): held by") {
			t.Fatal(err)
		}
	}
	after, _ := commands(t, rdb)
	if more := float64(after - before - tries); more > 2*time.Since(start).Seconds()+10 {
		t.Errorf("%d tries cost %d commands", tries, after-before)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = second(b.Acquire(ctx, lock.Request{Key: "k"}))
}

// Whoever finds a lock held for long is back in time, also if Redis has fallen silent meanwhile: as soon, in the median of many, as if Redis had
// answered.
func TestBusyIsInTimeOfASilentRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := behind(t, s, redisson.Timeout(2*time.Second))
	acquire(t.Context(), t, newClient(t, s), lock.Request{Key: "k", Lease: time.Hour})
	const wait, tries = 300 * time.Millisecond, 9
	acquire := func(d time.Duration) (time.Duration, error) {
		begun := time.Now()
		err := second(c.Acquire(t.Context(), lock.Request{Key: "k", Wait: d}))
		return time.Since(begun) - d, err
	}
	var late, usual []time.Duration
	for range tries {
		eventually(t, "Redis answers", func() bool {
			by, err := acquire(wait)
			if errors.Is(err, lock.ErrBusy) {
				usual = append(usual, by)
			}
			return errors.Is(err, lock.ErrBusy)
		})
		time.Sleep(1100 * time.Millisecond) // what is known of the holder is too old
		answer, came := p.KeepBackReply(naming("k"), 0), make(chan time.Duration)
		go func() {
			by, err := acquire(wait)
			if !errors.Is(err, lock.ErrBusy) {
				t.Errorf("the error is %v", err)
			}
			came <- by
		}()
		answer.Await(t)
		answer.Deliver(t)
		time.Sleep(wait / 2) // for it to have the answer
		p.Freeze()
		late = append(late, <-came)
		p.Thaw()
	}
	slices.Sort(late)
	slices.Sort(usual)
	if late[tries/2] > usual[len(usual)/2]+100*time.Millisecond {
		t.Errorf("it was late by %v, and by %v while Redis answered", late, usual)
	}
}
