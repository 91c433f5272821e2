package workload

import (
	"fmt"
	"strings"
	"testing"

	"tallyard/domain/fault"
)

// TestShapes is the table of JOB-03: for each framework which deployments it
// allows, with the numbers of replicas at and over each limit.
func TestShapes(t *testing.T) {
	allowed := map[Framework]string{
		TensorFlow: "SINGLE PS_WORKER MPI", PyTorch: "SINGLE MASTER_WORKER MPI", MXNet: "SINGLE SERVER_WORKER MPI",
		PaddlePaddle: "SINGLE COLLECTIVE", Caffe: "SINGLE MPI", Other: "SINGLE MPI",
	}
	ranges := map[Deployment][4]int{ // workers from, to; servers from, to
		Single: {1, 1, 0, 0}, PSWorker: {1, 1500, 1, 1000}, MPI: {2, 1500, 0, 0},
		MasterWorker: {1, 1500, 0, 0}, ServerWorker: {1, 1500, 1, 1000}, Collective: {2, 1500, 0, 0},
	}
	for _, f := range Frameworks {
		for _, d := range Deployments {
			t.Run(fmt.Sprintf("JOB-03_%s_%s", f, d), func(t *testing.T) {
				r := ranges[d]
				fits := strings.Contains(" "+allowed[f]+" ", " "+string(d)+" ")
				for _, workers := range []int{r[0] - 1, r[0], r[1], r[1] + 1} {
					for _, servers := range []int{r[2] - 1, r[2], r[3], r[3] + 1} {
						faults := CheckShape(f, d, Resources{Workers: workers, Servers: servers}, nil)
						want := ""
						switch {
						case !fits:
							want = "NOT_ALLOWED deploymentType"
						default:
							if workers < r[0] || workers > r[1] {
								want += "OUT_OF_RANGE resources.workers "
							}
							if servers < r[2] || servers > r[3] {
								want += "OUT_OF_RANGE resources.servers"
							}
						}
						if got := codes(faults); got != strings.TrimSpace(want) {
							t.Errorf("%d workers, %d servers: %q, want %q", workers, servers, got, want)
						}
					}
				}
				if !fits {
					for _, a := range strings.Fields(allowed[f]) {
						if msg := CheckShape(f, d, Resources{}, nil)[0].Message; !strings.Contains(msg, a) {
							t.Errorf("%q does not name %s", msg, a)
						}
					}
				}
			})
		}
	}
}

func codes(faults fault.List) string {
	list := make([]string, len(faults))
	for i, f := range faults {
		list[i] = string(f.Code) + " " + strings.Join(f.Field, ".")
	}
	return strings.Join(list, " ")
}

func TestElastic(t *testing.T) {
	for _, c := range []struct {
		f        Framework
		d        Deployment
		min, max int
		then     string
	}{
		{TensorFlow, MPI, 2, 4, ""},
		{PyTorch, MPI, 2, 4, ""},
		{PyTorch, MasterWorker, 1, 1500, ""},
		{TensorFlow, PSWorker, 2, 4, "NOT_ALLOWED elastic"},
		{MXNet, MPI, 2, 4, "NOT_ALLOWED elastic"},
		{PyTorch, Single, 2, 4, "NOT_ALLOWED elastic"},
		{PyTorch, MPI, 4, 4, "OUT_OF_RANGE elastic.maxWorkers"},
		{PyTorch, MPI, 0, 4, "OUT_OF_RANGE elastic.minWorkers"},
		{PyTorch, MPI, 2, 1501, "OUT_OF_RANGE elastic.maxWorkers"},
	} {
		t.Run(fmt.Sprintf("JOB-04_%s_%s_%d_%d", c.f, c.d, c.min, c.max), func(t *testing.T) {
			r := Resources{Workers: 2}
			if c.d == Single {
				r.Workers = 1
			}
			if c.d == PSWorker {
				r.Servers = 1
			}
			if got := codes(CheckShape(c.f, c.d, r, &Elastic{c.min, c.max})); got != c.then {
				t.Errorf("came to %q, want %q", got, c.then)
			}
		})
	}
}

// TestDefaultsFit: what is chosen for a framework is allowed by it.
func TestDefaultsFit(t *testing.T) {
	for _, f := range Frameworks {
		for _, workers := range []int{0, 1, 2, 1500} {
			d := Default(f, workers)
			if (workers <= 1) != (d == Single) && f != Caffe && f != Other {
				t.Errorf("ALG-01: %s with %d workers: %s", f, workers, d)
			}
			if !strings.Contains(fmt.Sprint(Allowed(f)), string(d)) {
				t.Errorf("%s is not allowed with %s", d, f)
			}
		}
	}
}

func TestAmounts(t *testing.T) {
	for name, c := range map[string]struct {
		r    Resources
		then string
	}{
		"RES-02_one_type":        {Resources{Accelerator: &Accelerator{Series: "NVIDIA", Type: "A100", Count: 8}}, ""},
		"RES-02_no_type":         {Resources{Accelerator: &Accelerator{Series: "NVIDIA", Count: 8}}, "REQUIRED resources.accelerator.type"},
		"RES-02_no_number":       {Resources{Accelerator: &Accelerator{Series: "NVIDIA", Type: "A100"}}, "OUT_OF_RANGE resources.accelerator.count"},
		"RES-04_negative_amount": {Resources{CPUMillis: -1, MemoryBytes: -1}, "OUT_OF_RANGE resources.cpuMillis OUT_OF_RANGE resources.memoryBytes"},
		"G18_over_2_GiB":         {Resources{MemoryBytes: 1 << 40}, ""},
		"RES-04_more_than_any":   {Resources{MemoryBytes: 1<<46 + 1}, "OUT_OF_RANGE resources.memoryBytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := codes(c.r.Check("resources")); got != c.then {
				t.Errorf("came to %q, want %q", got, c.then)
			}
		})
	}
	t.Run("STO-06_an_image_without_framework_is_OTHER", func(t *testing.T) {
		i := Image{Reference: "x"}
		if f := i.Check("image"); len(f) > 0 || i.Framework != Other {
			t.Errorf("%v, %+v", f, i)
		}
		i = Image{Framework: "pytorch"}
		if got := codes(i.Check("image")); got != "INVALID_VALUE image.framework REQUIRED image.reference" {
			t.Error(got)
		}
	})
}
