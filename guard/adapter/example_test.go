package adapter_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// message is what the handlers of a message queue get.
type message struct {
	topic, key string
}

type handler func(context.Context, message) error

// messages is a whole adapter: it says which facts a message has, and reads those that the key names.
func messages(g *guard.Guard, next handler) (handler, error) {
	runner, err := adapter.Prepare(g, keyexpr.Roots{"topic": keyexpr.TypeFor[string](), "key": keyexpr.TypeFor[string]()})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, m message) error {
		facts := func(root string) (any, error) {
			if root == "topic" {
				return m.topic, nil
			}
			return m.key, nil
		}
		_, err := runner.Run(ctx, facts, func(ctx context.Context) error { return next(ctx, m) })
		return err
	}, nil
}

func Example() {
	show := func(ctx context.Context, m message) error {
		fmt.Printf("%s %s, held: %t\n", m.topic, m.key, guard.Held(ctx, "message"))
		return nil
	}
	g := guard.Must(guard.New(memlock.New(), guard.Name("message"), guard.Key("#{topic}:#{key}")))
	handle := guard.Must(messages(g, show))
	fmt.Println(handle(context.Background(), message{"orders", "7"}))
	fmt.Println(errors.Is(handle(context.Background(), message{"orders", ""}), guard.ErrKey))
	_, err := messages(guard.Must(guard.New(memlock.New(), guard.Name("message"), guard.Key("#{topik}"))), show)
	fmt.Println(err)
	// Output:
	// orders 7, held: true
	// <nil>
	// true
	// guard "message": key: keyexpr: unknown name topik, did you mean topic? (at offset 2 of "#{topik}")
}

// Wrap is called by code that latchkey-gen writes, here for
//
//	//latchkey:guard order:#{id}; wait=2s
//	func settle(ctx context.Context, id string) (string, error)
func ExampleWrap() {
	settle := func(ctx context.Context, id string) (string, error) {
		return fmt.Sprintf("%s, held: %v", id, guard.Held(ctx, "settle")), nil
	}
	var guarded func(context.Context, string) (string, error)
	err := adapter.Wrap(memlock.New(), nil, adapter.Directive[string, string]{
		Name: "settle",
		Text: "order:#{id}; wait=2s",
		Of:   settle,
		Args: "id",
		Call: settle,
		To:   &guarded,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(guarded(context.Background(), "7"))
	_, err = guarded(context.Background(), "")
	fmt.Println(err)
	// Output:
	// 7, held: true <nil>
	// guard "settle": no key from this request: keyexpr: unusable value: id is empty
}
