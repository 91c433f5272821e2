package main

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics serves what an operator watches.
func (p *parts) metrics() http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collector{p})
	if p.events != nil {
		reg.MustRegister(roomCollector{p.events})
	}
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
}

// collector reads the counters of the parts when it is asked.
type collector struct{ p *parts }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tallyard_"+name, help, labels, nil)
}

var (
	lagEvents     = desc("projection_lag_events", "Events that the projection has not seen.", "projection")
	lagSeconds    = desc("projection_age_seconds", "How long ago the oldest event was written that the projection has not seen.", "projection")
	parkedStreams = desc("projection_parked_streams", "Streams with an event that could not be projected.", "projection")
	haltedGauge   = desc("projection_halted", "1 when the projection met an event that this program does not know.", "projection")
	stalledGauge  = desc("projection_stalled_seconds", "For how long the projection's transactions have been failing.", "projection")
	operationsSum = desc("graphql_operations_total", "Operations started.", "kind")
	runningGauge  = desc("graphql_operations_running", "Operations running now.")
	socketsGauge  = desc("graphql_sockets", "WebSockets open now.")
	refusedSum    = desc("graphql_refused_total", "Requests refused before they ran.")
	panicsSum     = desc("graphql_panics_total", "Panics while serving.")
	slowSum       = desc("graphql_slow_closed_total", "Sockets given up because the client did not read.")
	liveBehind    = desc("live_behind_seconds", "For how long live updates have not waited for read models that stand still; absent when they wait.", "projections")
	liveEarlySum  = desc("live_unconfirmed_total", "Live updates that went out before their read model had them.")
	liveHeld      = desc("live_held_bytes", "Memory that live updates keep for all subscribers.", "what")
)

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		lagEvents, lagSeconds, parkedStreams, haltedGauge, stalledGauge, operationsSum, runningGauge, socketsGauge, refusedSum, panicsSum, slowSum,
		liveBehind, liveEarlySum, liveHeld,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	for _, g := range c.p.runner.Gauges() {
		gauge(lagEvents, float64(g.Lag.Events), g.Projection)
		gauge(lagSeconds, g.Lag.Seconds, g.Projection)
		gauge(parkedStreams, float64(g.Parked), g.Projection)
		halted := 0.0
		if g.Halted {
			halted = 1
		}
		gauge(haltedGauge, halted, g.Projection)
		gauge(stalledGauge, g.Stalled.Seconds(), g.Projection)
	}
	behind, early := c.p.hub.Behind(context.Background()) // it has its own deadline
	for projections, since := range behind {
		gauge(liveBehind, since.Seconds(), projections)
	}
	counter(liveEarlySum, early)
	events, states := c.p.hub.Held()
	gauge(liveHeld, float64(events), "events")
	gauge(liveHeld, float64(states), "states")
	m := c.p.graphql.Metrics()
	counter(operationsSum, m.Queries, "query")
	counter(operationsSum, m.Mutations, "mutation")
	counter(operationsSum, m.Subscriptions, "subscription")
	gauge(runningGauge, float64(m.Running))
	gauge(socketsGauge, float64(m.Sockets))
	counter(refusedSum, m.Refused)
	counter(panicsSum, m.Panics)
	counter(slowSum, m.SlowClosed)
}
