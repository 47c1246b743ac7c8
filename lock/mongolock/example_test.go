package mongolock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/mongolock"
)

// exampleURI is the server of the tests; a program has its own.
func exampleURI() string {
	s, err := shared()
	if err != nil {
		log.Fatal(err)
	}
	return uriOf(s.Addr)
}

func Example() {
	client, err := mongo.Connect(options.Client().ApplyURI(exampleURI()))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	locker, err := mongolock.New(client.Database("app").Collection(mongolock.Collection))
	if err != nil {
		log.Fatal(err)
	}

	settle := guard.Must(guard.New(locker, guard.Name("order.settle"), guard.Key("order:#{raw(req)}")))
	pay := guard.Must(guard.Func(settle, func(ctx context.Context, order string) (string, error) {
		_, err := locker.Acquire(lock.NewOwner(ctx), lock.Request{Key: "order:" + order}) // somebody else
		return fmt.Sprint("another one is busy: ", errors.Is(err, lock.ErrBusy)), nil
	}))
	fmt.Println(pay(context.Background(), "42"))
	// Output: another one is busy: true <nil>
}

func ExampleLocker_Check() {
	client, err := mongo.Connect(options.Client().ApplyURI(exampleURI()))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	locker, err := mongolock.New(client.Database("app").Collection(mongolock.Collection), mongolock.Tokens())
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := locker.Check(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("the server and the collection will do")
	// Output: the server and the collection will do
}
