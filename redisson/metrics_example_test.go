package redisson_test

import (
	"context"
	"fmt"
	"log"

	"github.com/latchkey-go/latchkey/redisson"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func ExampleMeterProvider() {
	reader := sdkmetric.NewManualReader() // a program has the reader of an exporter
	client, stop := example(redisson.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	defer stop()
	ctx := context.Background()
	held, err := client.Lock("order:42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Lock("order:42").Unlock(held) }()

	var seen metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &seen); err != nil {
		log.Fatal(err)
	}
	for _, m := range seen.ScopeMetrics[0].Metrics {
		if m.Name == "latchkey.redisson.held" {
			fmt.Println(m.Data.(metricdata.Sum[int64]).DataPoints[0].Value, m.Unit)
		}
	}
	// Output: 1 {hold}
}
