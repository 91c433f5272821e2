package workload

import (
	"slices"

	"tallyard/domain/fault"
	"tallyard/domain/text"
)

// Image is what a run starts from: a reference such as "pytorch:2.6", and the
// framework that it is made for.
type Image struct {
	Framework Framework `json:"framework"`
	Reference string    `json:"reference"`
}

// Frameworks lists every framework.
var Frameworks = []Framework{TensorFlow, PyTorch, MXNet, PaddlePaddle, Caffe, Other}

// Deployments lists every deployment.
var Deployments = []Deployment{Single, PSWorker, MPI, MasterWorker, ServerWorker, Collective}

// Limits of what one replica may ask for; machines are far smaller, these keep
// sums inside their types.
const (
	maxCPUMillis    = 1_000_000
	maxMemoryBytes  = 1 << 46
	maxAccelerators = 1024
)

// Check checks an image; an absent framework becomes Other.
func (i *Image) Check(field ...string) fault.List {
	var faults fault.List
	if i.Framework == "" {
		i.Framework = Other
	}
	if !slices.Contains(Frameworks, i.Framework) {
		faults.Add(fault.New(fault.Invalid, fault.CodeInvalidValue, "There is no such framework; choose one of the schema's.").At(append(field, "framework")...))
	}
	ref, bad := text.Line(1, 255).Clean(i.Reference, append(field, "reference")...)
	faults.Add(bad)
	i.Reference = ref
	return faults
}

// Check checks the amounts per replica; counts of replicas are for CheckShape.
func (r *Resources) Check(field ...string) fault.List {
	var faults fault.List
	at := func(f *fault.Fault, name ...string) {
		if f != nil {
			faults.Add(f.At(append(slices.Clone(field), name...)...))
		}
	}
	at(between(r.CPUMillis, 0, maxCPUMillis), "cpuMillis")
	if r.MemoryBytes < 0 || r.MemoryBytes > maxMemoryBytes {
		at(fault.New(fault.Invalid, fault.CodeOutOfRange, "This must lie between 0 and 64 TiB."), "memoryBytes")
	}
	if a := r.Accelerator; a != nil {
		at(between(a.Count, 1, maxAccelerators), "accelerator", "count")
		var bad *fault.Fault
		a.Series, bad = text.Line(1, 64).Clean(a.Series)
		at(bad, "accelerator", "series")
		a.Type, bad = text.Line(1, 64).Clean(a.Type)
		at(bad, "accelerator", "type")
	}
	return faults
}
