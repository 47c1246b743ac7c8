package interceptor_test

import (
	"context"
	"testing"

	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// TestHashOfMessages holds that requests which differ in any field have keys that differ, and that what a message keeps for
// itself (its cached size) makes no difference.
func TestHashOfMessages(t *testing.T) {
	tmpl, err := keyexpr.Parse("call:#{hash(req)}", keyexpr.Roots{"req": keyexpr.TypeFor[*testpb.SimpleRequest]()})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	requests := []*testpb.SimpleRequest{
		{}, {ResponseSize: 1}, {FillUsername: true}, {Payload: &testpb.Payload{}}, {Payload: &testpb.Payload{Body: []byte("a")}}, {Payload: &testpb.Payload{Body: []byte("b")}},
		{ResponseStatus: &testpb.EchoStatus{Message: "a"}}, {ResponseStatus: &testpb.EchoStatus{Code: 1}}, {ResponseType: testpb.PayloadType(7)},
		{ExpectCompressed: &testpb.BoolValue{}}, {ExpectCompressed: &testpb.BoolValue{Value: true}},
	}
	for i, req := range requests {
		for range 2 {
			keys, err := tmpl.Expand(context.Background(), func(string) (any, error) { return req, nil })
			if err != nil {
				t.Fatal(err)
			}
			if was, ok := seen[keys[0]]; ok && was != i {
				t.Errorf("%v and %v have one key", requests[was], req)
			}
			seen[keys[0]] = i
			_ = req.String() // which may fill in what the message keeps
		}
	}
	if len(seen) != len(requests) {
		t.Errorf("%d requests have %d keys", len(requests), len(seen))
	}
}
