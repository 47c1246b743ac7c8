package mongolock_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/mongolock"
)

func TestMain(m *testing.M) {
	if job := os.Getenv(jobVariable); job != "" {
		os.Exit(runJob(job))
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "2") // SecantusDB answers a few hundred questions a second
	if _, err := shared(); errors.Is(err, services.ErrMissing) && !services.Required("mongodb") {
		_ = flag.Set("test.skip", "^Example") // an example can't skip itself
	}
	code := m.Run()
	if s, err := shared(); err == nil && s != nil {
		s.Stop()
	}
	os.Exit(code)
}

// shared starts the server that most tests use, unless LATCHKEY_MONGODB names one.
var shared = sync.OnceValues(func() (*services.Server, error) {
	if os.Getenv("LATCHKEY_MONGODB") != "" {
		return nil, nil
	}
	defer inMemory()()
	s, err := services.MongoDB(services.Options{})
	if err == nil {
		path, _, _ := services.MongoProgram()
		fmt.Println("the server is", path)
	}
	return s, err
})

// inMemory has temporary directories in memory until the function that it returns is called: all that is written waits for the disk
// otherwise, and that may be that of a busy machine.
func inMemory() (end func()) {
	const memory, variable = "/dev/shm", "TMPDIR"
	_, had := os.LookupEnv(variable)
	if info, err := os.Stat(memory); err != nil || !info.IsDir() || had {
		return func() {}
	}
	_ = os.Setenv(variable, memory)
	return func() { _ = os.Unsetenv(variable) }
}

// serverURI is the address of a server that the test shares with others, so that it must not harm it.
func serverURI(tb testing.TB) string {
	tb.Helper()
	if uri := os.Getenv("LATCHKEY_MONGODB"); uri != "" {
		return uri
	}
	s, err := shared()
	if errors.Is(err, services.ErrMissing) && !services.Required("mongodb") {
		tb.Skipf("needs mongodb: %v (or the URI of a server in LATCHKEY_MONGODB)", err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return uriOf(s.Addr)
}

func uriOf(addr string) string { return "mongodb://" + addr + "/?directConnection=true" }

// connect returns a client, closed when the test ends.
func connect(tb testing.TB, uri string, changes ...func(*options.ClientOptions)) *mongo.Client {
	tb.Helper()
	opts := options.Client().ApplyURI(uri)
	for _, change := range changes {
		change(opts)
	}
	client, err := mongo.Connect(opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client
}

const database = "mongolock_test"

// newCollection returns a collection of the test's own on the shared server, dropped when the test ends.
func newCollection(tb testing.TB) *mongo.Collection {
	tb.Helper()
	return collectionAt(tb, serverURI(tb))
}

func collectionAt(tb testing.TB, uri string) *mongo.Collection {
	tb.Helper()
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("/$. ", r) {
			return '_'
		}
		return r
	}, tb.Name())
	coll := connect(tb, uri).Database(database).Collection(name)
	_ = coll.Drop(context.Background())
	tb.Cleanup(func() { _ = coll.Drop(context.Background()) })
	return coll
}

func newLocker(tb testing.TB, coll *mongo.Collection, opts ...mongolock.Option) *mongolock.Locker {
	tb.Helper()
	l, err := mongolock.New(coll, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// count returns how many documents there are.
func count(tb testing.TB, coll *mongo.Collection) int64 {
	tb.Helper()
	n, err := coll.CountDocuments(context.Background(), bson.D{})
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// ownServer starts a server that the test may harm.
func ownServer(tb testing.TB, args ...string) *services.Server {
	tb.Helper()
	return services.Start(tb, "mongodb", services.MongoDB, services.Options{Args: args})
}

// durable is what has a server write to the disk what it commits. A mongod does so by itself.
func durable() []string {
	if _, isMongod, _ := services.MongoProgram(); isMongod {
		return nil
	}
	return []string{"--sync-on-commit"}
}

// collectionOf is a collection through a client of its own.
func collectionOf(tb testing.TB, uri, name string) *mongo.Collection {
	tb.Helper()
	return connect(tb, uri).Database(database).Collection(name)
}

type extender interface {
	Extend(ctx context.Context, d time.Duration) error
}

// isOutage reports whether err says that the service could not answer.
func isOutage(err error) bool {
	return err != nil && !errors.Is(err, lock.ErrBusy) && !errors.Is(err, lock.ErrRefused) && !errors.Is(err, lock.ErrUnsupported)
}
