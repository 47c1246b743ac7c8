// Latchkey-gen writes guards for methods of interfaces, and for functions, that are declared in a comment above them:
//
//	// Orders is what handlers call.
//	type Orders interface {
//		// Pay charges an order, once.
//		//
//		//latchkey:guard order:#{id}; wait=5s; lease=30s
//		Pay(ctx context.Context, id string, cents int64) (Receipt, error)
//		// Find needs no lock.
//		Find(ctx context.Context, id string) (Order, error)
//	}
//
// From orders.go it makes orders_latchkey.go, with a type GuardedOrders and
//
//	func GuardOrders(locker lock.Locker, next Orders, opts ...guard.Option) (*GuardedOrders, error)
//
// which puts itself in front of any Orders: Pay takes the lock order:42, runs the Pay of next with a context that ends when the
// lock is lost, and gives it back. Find is passed on. Above a function func Settle(ctx context.Context, id string) error, the same
// comment makes
//
//	func GuardSettle(locker lock.Locker, opts ...guard.Option) (func(ctx context.Context, id string) error, error)
//
// The code for an interface or a function that is not exported is not exported either.
//
// # Run it
//
// Write a line into one of the files of the package, and call go generate after each change:
//
//	//go:generate go tool latchkey-gen
//
// behind a go get -tool github.com/latchkey-go/latchkey/cmd/latchkey-gen, which notes the version in go.mod. Without that, it is
//
//	//go:generate go run github.com/latchkey-go/latchkey/cmd/latchkey-gen@latest
//
// The arguments are packages as the go command names them, such as ./..., instead of that of the current folder. Commit
// the generated files. In CI,
//
//	go tool latchkey-gen -check ./...
//
// writes nothing, and exits with 1 if a file does not follow its directives. The compiler finds most of that, too:
// GuardedOrders no longer implements an interface that has another method. It can't see a directive that has changed.
//
// # What a directive says
//
// Behind the name and a blank stands the text of a struct tag of package guard, without quotes: the template of the
// key, and then attributes behind semicolons. Package guard has the list of them. The options of the constructor fill
// in the attributes that a directive leaves open; they are for all guards of a wrapper. A directive is one line, has no
// blank behind its slashes, and is the last of the comment, where gofmt puts it.
//
// The facts of templates and conditions are the arguments by their names, without the context: #{id},
// #{req.Customer.ID}, when=cents > 0. An argument without a name is req if it is the only one. If the only argument is
// called req, tags of its type fill in the attributes that the directive leaves open, as they do for guard.Func.
//
// A guard is called Orders.Pay, or Settle, if there is no name=… in the directive. The option guard.Name gives the
// guards of one wrapper another first part, for two wrappers that are in one Registry.
//
// # What can be guarded
//
// Methods and functions that take a context.Context first and return an error last, with any arguments and results between them,
// variadic and generic ones, too. The methods of embedded interfaces count: their directives are read where they are
// declared, also in other packages. If there are several of one method, the nearest counts. A method of a type has no wrapper; an
// interface that has the method is where its directive goes. Directives in tests, and in files that are not built on this system, are not
// for here: the first are refused, and the second are for a run with that GOOS.
//
// Calls that go around the wrapper are not guarded: those of a method of next to another one, and those of whoever has next.
//
// # What is checked, and when
//
// When it runs, latchkey-gen makes each guard as the program will, against the types in the source: a typo, a key that
// is the same for all requests, a field that is no key material, a method that can't be guarded, a directive where
// nothing can be, and one that is misspelt are errors with a file, a line and what to write. Then no file is written.
// Code that would not compile is not written, either. The constructor checks the same once more when the program
// starts, since options and overrides of a Registry may change the declaration, and the type of a type parameter is
// known only then.
//
// # What it costs
//
// A call of generated code uses no reflection: for a key of paths along fields to texts and whole numbers, the code follows the paths
// by itself, and gives the values to the template, which escapes them as ever. The keys are the same, byte by byte. Whatever is not
// plain, such as a list, a UUID, a condition, an empty text or a key of over 512 bytes, is made, or refused, by the template. The
// three ways to declare, side by side on your machine:
//
//	go test -run '^$' -bench Declared -benchmem github.com/latchkey-go/latchkey/guard
//
// A call makes three pieces of memory, those of its lock and key included, where Func makes five and Bind seventeen.
package main
