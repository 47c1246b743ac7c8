// Package guardpb is the method option (latchkey.guard.v1.guard), which declares the guard of a method in its .proto file.
// Package interceptor reads it: see interceptor.FromOptions.
//
//	import "latchkey/guard/v1/guard.proto";
//
//	service Bank {
//	  rpc Transfer(TransferRequest) returns (TransferResponse) {
//	    option (latchkey.guard.v1.guard) = { key: "account:#{req.from_account}" wait: "2s" };
//	  }
//	}
//
// Its fields are the attributes of a guard.Spec, with _ for -, but for two that would say nothing: args, as a method has
// one request, and methods, as all of its calls are a POST. An expression in the place of a limit is limit_from.
//
// # Finding guard.proto
//
// The file lies in the folder of this package, and is imported by the path that its proto package says. protoc takes a
// folder under another name:
//
//	protoc -I . -I latchkey/guard/v1=$(go list -f '{{.Dir}}' github.com/latchkey-go/latchkey/interceptor/guardpb) …
//
// For buf, copy it to latchkey/guard/v1/guard.proto in a module of yours, and generate no Go code of that copy: guard.proto
// has the go_package of this package.
package guardpb
