// Package roots lists what the adapters can tell a template, for them and for tools that check templates without them.
package roots

import "github.com/latchkey-go/latchkey/keyexpr"

// HTTP are the roots of a request of net/http and gin. path has the path values of its route, and body its JSON.
func HTTP(path, body keyexpr.Root) keyexpr.Roots {
	return keyexpr.Roots{
		"method": keyexpr.TypeFor[string](),
		"host":   keyexpr.TypeFor[string](),
		"route":  keyexpr.TypeFor[string](),
		"path":   path,
		"query":  keyexpr.AnyName(),
		"header": keyexpr.AnyName(),
		"cookie": keyexpr.AnyName(),
		"form":   keyexpr.AnyName(),
		"body":   body,
	}
}

// RPC are the roots of a call of gRPC and Connect, with the request that its handler gets.
func RPC(request keyexpr.Root) keyexpr.Roots {
	return keyexpr.Roots{
		"req":    request,
		"md":     keyexpr.AnyName(),
		"method": keyexpr.TypeFor[string](),
	}
}
