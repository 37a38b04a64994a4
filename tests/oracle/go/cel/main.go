// Command cel answers what Kubernetes itself says about a device selector.
//
// It reads one case per line on standard input and writes one answer per line, in order, on
// standard output. A case is a JSON object: expression, the device (driver, attributes,
// capacity, allowMultipleAllocations), newExpressions (checked as the API server checks a new
// expression), listTypeAttributes, consumableCapacity, and runs (how often to evaluate when
// the time is wanted). The answer has compileError, or cost with match or matchError.
package main

import (
	"context"
	"encoding/json"
	"fmt"

	"dryrack.dev/oracle/internal/clock"
	"dryrack.dev/oracle/internal/lines"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

type question struct {
	Expression               string                                                  `json:"expression"`
	Driver                   string                                                  `json:"driver"`
	Attributes               map[resourcev1.QualifiedName]resourcev1.DeviceAttribute `json:"attributes"`
	Capacity                 map[resourcev1.QualifiedName]resourcev1.DeviceCapacity  `json:"capacity"`
	AllowMultipleAllocations *bool                                                   `json:"allowMultipleAllocations"`
	NewExpressions           bool                                                    `json:"newExpressions"`
	ListTypeAttributes       bool                                                    `json:"listTypeAttributes"`
	ConsumableCapacity       bool                                                    `json:"consumableCapacity"`
	Runs                     int                                                     `json:"runs"`
}

type answer struct {
	CompileError string  `json:"compileError,omitempty"`
	Match        bool    `json:"match"`
	MatchError   string  `json:"matchError,omitempty"`
	Panic        string  `json:"panic,omitempty"`
	Cost         uint64  `json:"cost"`
	ActualCost   *uint64 `json:"actualCost,omitempty"`
	NanosPerRun  int64   `json:"nanosPerRun,omitempty"`
	CompileNanos int64   `json:"compileNanos"`
}

// The compiler's type is not exported upstream, and GetCompiler itself remembers one compiler
// only: cases that alternate between features would each build an environment.
type compile func(expression string, options dracel.Options) dracel.CompilationResult

type oracle struct {
	compilers map[dracel.Features]compile
}

func (o *oracle) compiler(features dracel.Features) compile {
	if o.compilers[features] == nil {
		o.compilers[features] = dracel.GetCompiler(features).CompileCELExpression
	}
	return o.compilers[features]
}

func (o *oracle) answer(q question) (a answer) {
	defer func() {
		if problem := recover(); problem != nil {
			a = answer{Panic: fmt.Sprint(problem)}
		}
	}()
	environmentType := environment.StoredExpressions
	if q.NewExpressions {
		environmentType = environment.NewExpressions
	}
	compile := o.compiler(dracel.Features{
		EnableConsumableCapacity: q.ConsumableCapacity,
		EnableListTypeAttributes: q.ListTypeAttributes,
	})
	var compiled dracel.CompilationResult
	a.CompileNanos = clock.Measure(func() {
		compiled = compile(q.Expression, dracel.Options{EnvType: &environmentType})
	}).Nanoseconds()
	a.Cost = compiled.MaxCost
	if compiled.Error != nil {
		a.CompileError = compiled.Error.Error()
		return a
	}
	a.evaluate(compiled, q)
	return a
}

func (a *answer) evaluate(compiled dracel.CompilationResult, q question) {
	device := dracel.Device{
		Driver:                   q.Driver,
		AllowMultipleAllocations: q.AllowMultipleAllocations,
		Attributes:               q.Attributes,
		Capacity:                 q.Capacity,
	}
	match, details, err := compiled.DeviceMatches(context.Background(), device)
	a.Match = match
	if err != nil {
		a.MatchError = err.Error()
	}
	if details != nil {
		a.ActualCost = details.ActualCost()
	}
	if q.Runs == 0 {
		return
	}
	a.NanosPerRun = clock.Measure(func() {
		for range q.Runs {
			_, _, _ = compiled.DeviceMatches(context.Background(), device)
		}
	}).Nanoseconds() / int64(q.Runs)
}

func main() {
	o := &oracle{compilers: map[dracel.Features]compile{}}
	lines.Main(func(line []byte) (answer, error) {
		var q question
		if err := json.Unmarshal(line, &q); err != nil {
			return answer{}, err
		}
		return o.answer(q), nil
	})
}
