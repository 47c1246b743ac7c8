package zklock

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
	"github.com/latchkey-go/latchkey/lock"
)

var (
	errClosed  = errors.New("zklock: the session was closed")
	errExpired = errors.New("zklock: the session has expired")
	errDeleted = errors.New("zklock: somebody has deleted the node of the lock")
	errMoved   = errors.New("zklock: the session ended while a question was open")
	errSilent  = errors.New("zklock: no answer from ZooKeeper")
	errGone    = errors.New("zklock: the node of the lock is not in line anymore")
	errProof   = errors.New("zklock: ZooKeeper has not confirmed the session in time")
	errParents = errors.New("zklock: the parent of the node was missing")
	errOld     = fmt.Errorf("%w: the servers don't know containers: zklock needs ZooKeeper 3.5 or later", lock.ErrRefused)
	errSpent   = errors.New("zklock: the counter of this key is at its end; it begins again once nobody waits and its node is deleted")
)

// final are the answers that say what the servers will say again.
var final = []error{zk.ErrNoAuth, zk.ErrInvalidACL, zk.ErrNoChildrenForEphemerals, zk.ErrAuthFailed, zk.ErrInvalidPath, zk.ErrBadArguments}

// answers are the errors with which a server says that it has done something, or why not.
var answers = []error{zk.ErrNoNode, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrBadVersion, zk.ErrNoAuth, zk.ErrInvalidACL,
	zk.ErrNoChildrenForEphemerals, zk.ErrBadArguments}

func oneOf(err error, list []error) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// heard reports whether err is what a server has answered in a living session.
func heard(err error) bool { return err == nil || oneOf(err, answers) }

// refusal makes an ErrRefused of an answer that will not change.
func refusal(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case oneOf(err, final):
		return fmt.Errorf("zklock: %s: %w: %w", doing, lock.ErrRefused, err)
	}
	return fmt.Errorf("zklock: %s: %w", doing, err)
}
