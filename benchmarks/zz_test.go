package main
import ("context";"testing";"github.com/latchkey-go/latchkey/lock/memlock")
func BenchmarkGuardNS(b *testing.B){
	ctx, stop := context.WithCancel(context.Background()); defer stop()
	for _, d := range declarations { b.Run(d.name, func(b *testing.B){
	f, err := d.declare(memlock.New()); if err!=nil {b.Fatal(err)}
	b.ReportAllocs()
	for b.Loop(){ if _,err:=f(ctx,payment);err!=nil{b.Fatal(err)} } }) }
}
