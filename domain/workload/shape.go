// Package workload holds what everything that holds compute shares: images,
// deployment types and their limits, resources.
package workload

import (
	"fmt"
	"slices"
	"strings"

	"tallyard/domain/fault"
)

// Framework is what an image is made for.
type Framework string

// Frameworks. Other stands for an image that names none.
const (
	TensorFlow   Framework = "TENSORFLOW"
	PyTorch      Framework = "PYTORCH"
	MXNet        Framework = "MXNET"
	PaddlePaddle Framework = "PADDLEPADDLE"
	Caffe        Framework = "CAFFE"
	Other        Framework = "OTHER"
)

// Deployment is how the processes of a distributed run are arranged (JOB-03).
type Deployment string

// Deployments.
const (
	Single       Deployment = "SINGLE"
	PSWorker     Deployment = "PS_WORKER"
	MPI          Deployment = "MPI"
	MasterWorker Deployment = "MASTER_WORKER"
	ServerWorker Deployment = "SERVER_WORKER"
	Collective   Deployment = "COLLECTIVE"
)

// Limits of replicas per role (JOB-03).
const (
	MaxWorkers = 1500
	MaxServers = 1000
)

// Allowed lists the deployments that a framework can be run with. SINGLE fits
// all; an image without a framework allows SINGLE and MPI (STO-06).
func Allowed(f Framework) []Deployment {
	switch f {
	case TensorFlow:
		return []Deployment{Single, PSWorker, MPI}
	case PyTorch:
		return []Deployment{Single, MasterWorker, MPI}
	case MXNet:
		return []Deployment{Single, ServerWorker, MPI}
	case PaddlePaddle:
		return []Deployment{Single, Collective}
	default:
		return []Deployment{Single, MPI}
	}
}

// Default is the deployment chosen from an image's framework (ALG-01).
func Default(f Framework, workers int) Deployment {
	if workers <= 1 {
		return Single
	}
	switch f {
	case TensorFlow:
		return PSWorker
	case PyTorch:
		return MasterWorker
	case MXNet:
		return ServerWorker
	case PaddlePaddle:
		return Collective
	default:
		return Single
	}
}

// Resources is what a run asks for. Counts are replicas; Servers counts
// parameter servers (PS_WORKER) or servers (SERVER_WORKER). The other fields
// are per replica.
type Resources struct {
	Workers     int          `json:"workers"`
	Servers     int          `json:"servers,omitempty"`
	CPUMillis   int          `json:"cpuMillis,omitempty"`   // thousandths of a core
	MemoryBytes int64        `json:"memoryBytes,omitempty"` //
	Accelerator *Accelerator `json:"accelerator,omitempty"`
}

// Accelerator is a number of cards of one type of one series (RES-02).
type Accelerator struct {
	Series string `json:"series"` // "NVIDIA", "Ascend"
	Type   string `json:"type"`   // "A100"
	Count  int    `json:"count"`  // per replica
}

// Elastic is the range of workers of an elastic run (JOB-04); it counts all replicas.
type Elastic struct {
	MinWorkers int `json:"minWorkers"`
	MaxWorkers int `json:"maxWorkers"`
}

// CheckShape checks a deployment with its replicas against JOB-03 and JOB-04
// and returns every fault; paths start at the fields deployment, resources, elastic.
func CheckShape(f Framework, d Deployment, r Resources, e *Elastic) fault.List {
	var faults fault.List
	if !slices.Contains(Allowed(f), d) {
		names := make([]string, 0, 3)
		for _, a := range Allowed(f) {
			names = append(names, string(a))
		}
		faults.Add(fault.New(fault.Invalid, fault.CodeNotAllowed,
			fmt.Sprintf("An image of %s allows %s; choose one of them.", f, strings.Join(names, ", "))).At("deploymentType"))
		return faults
	}
	lo, hi := workerRange(d)
	faults.Add(between(r.Workers, lo, hi, "resources", "workers"))
	switch d {
	case PSWorker, ServerWorker:
		faults.Add(between(r.Servers, 1, MaxServers, "resources", "servers"))
	default:
		faults.Add(between(r.Servers, 0, 0, "resources", "servers"))
	}
	faults = append(faults, checkElastic(f, d, e)...)
	return faults
}

func workerRange(d Deployment) (lo, hi int) {
	switch d {
	case Single:
		return 1, 1
	case MPI, Collective:
		return 2, MaxWorkers
	default:
		return 1, MaxWorkers
	}
}

func checkElastic(f Framework, d Deployment, e *Elastic) fault.List {
	var faults fault.List
	if e == nil {
		return faults
	}
	horovod := d == MPI && (f == TensorFlow || f == PyTorch)
	ddp := d == MasterWorker && f == PyTorch
	if !horovod && !ddp {
		faults.Add(fault.New(fault.Invalid, fault.CodeNotAllowed,
			"Elastic runs need MPI with TensorFlow or PyTorch, or MASTER_WORKER with PyTorch; change the deployment or leave elastic out.").At("elastic"))
		return faults
	}
	faults.Add(between(e.MinWorkers, 1, MaxWorkers, "elastic", "minWorkers"))
	faults.Add(between(e.MaxWorkers, 1, MaxWorkers, "elastic", "maxWorkers"))
	if e.MaxWorkers <= e.MinWorkers {
		faults.Add(fault.New(fault.Invalid, fault.CodeOutOfRange, "maxWorkers must be more than minWorkers.").At("elastic", "maxWorkers"))
	}
	return faults
}

func between(n, lo, hi int, field ...string) *fault.Fault {
	if n >= lo && n <= hi {
		return nil
	}
	msg := fmt.Sprintf("This must lie between %d and %d.", lo, hi)
	if lo == hi {
		msg = fmt.Sprintf("This must be %d with this deployment.", lo)
	}
	return fault.New(fault.Invalid, fault.CodeOutOfRange, msg).At(field...)
}
