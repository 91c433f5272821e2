package model

import (
	"fmt"
	"math"
	"strings"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/fault"
	"tallyard/domain/text"
)

// VersionRef names a version inside its model.
type VersionRef struct {
	Model   uuid.UUID
	Version uuid.UUID
}

// ImportInput is what a person gives to import a directory of their home.
type ImportInput struct {
	Project   uuid.UUID
	Name      string
	Number    int
	Directory string
	Fields    Fields
}

// UpdateInput is what a person gives to edit what describes a version.
type UpdateInput struct {
	VersionRef
	Fields   Fields
	Expected *int // the version's counter, when the person wants to be told of others' edits
}

const (
	maxPairs  = 200
	maxValue  = 4096
	maxNumber = math.MaxInt32
)

// clean checks fields one by one and brings texts into NFC.
func (f *Fields) clean() fault.List {
	var faults fault.List
	line := func(value **string, rule text.Rule, field string) {
		if *value != nil {
			clean, bad := rule.Clean(**value, field)
			faults.Add(bad)
			*value = &clean
		}
	}
	line(&f.Description.Value, text.Description, "description")
	line(&f.Scenario.Value, text.Line(1, 128), "scenario")
	line(&f.Data.Value, text.Line(0, 512), "data")
	line(&f.Image.Value, text.Line(0, 255), "image")
	line(&f.Script.Value, text.Line(0, 4096), "script")
	if f.Scenario.Cleared() {
		faults.Add(fault.New(fault.Invalid, fault.CodeNotClearable, "This can't be empty; leave it out to keep it, or give a new value.").At("scenario"))
	}
	if s := f.Script.Value; s != nil && *s != "" && !strings.HasSuffix(*s, ".py") && !strings.HasSuffix(*s, ".prototxt") {
		faults.Add(fault.New(fault.Invalid, fault.CodeInvalidValue, "A script ends in .py or .prototxt; name another file.").At("script"))
	}
	if o := f.Origin.Value; o != nil && *o != TrainingJob && *o != Local && *o != External {
		faults.Add(fault.New(fault.Invalid, fault.CodeInvalidValue, "There is no such origin; choose TRAINING_JOB, LOCAL or EXTERNAL.").At("origin"))
	}
	if p := f.Parameters.Value; p != nil {
		faults = append(faults, cleanNames(len(*p), "parameters", func(i int) *string { return &(*p)[i].Name })...)
		for i := range *p {
			rule := text.Rule{Max: maxValue, Lines: true, Says: "any text without control characters"}
			clean, bad := rule.Clean((*p)[i].Value, "parameters", fmt.Sprint(i), "value")
			faults.Add(bad)
			(*p)[i].Value = clean
		}
	}
	if m := f.Metrics.Value; m != nil {
		faults = append(faults, cleanNames(len(*m), "metrics", func(i int) *string { return &(*m)[i].Name })...)
		for i, metric := range *m {
			if math.IsNaN(metric.Value) || math.IsInf(metric.Value, 0) {
				faults.Add(fault.New(fault.Invalid, fault.CodeInvalidValue, "This is no number; give one.").At("metrics", fmt.Sprint(i), "value"))
			}
		}
	}
	return faults
}

// cleanNames checks the names of a list: each a line of text, none twice.
func cleanNames(n int, field string, name func(int) *string) fault.List {
	var faults fault.List
	if n > maxPairs {
		faults.Add(fault.New(fault.Invalid, fault.CodeTooMany, fmt.Sprintf("There are too many; give at most %d.", maxPairs)).At(field))
		return faults
	}
	seen := map[string]bool{}
	for i := range n {
		at := []string{field, fmt.Sprint(i), "name"}
		clean, bad := text.Line(1, 128).Clean(*name(i), at...)
		faults.Add(bad)
		if bad == nil && seen[clean] {
			faults.Add(fault.New(fault.Invalid, fault.CodeDuplicate, "This name is given twice; keep one of them.").At(at...))
		}
		seen[clean] = true
		*name(i) = clean
	}
	return faults
}

// clean checks what is imported, but for the files.
func (in *ImportInput) clean() fault.List {
	var faults fault.List
	name, bad := text.Name.Clean(in.Name, "name")
	faults.Add(bad)
	in.Name = name
	if in.Number < 1 || in.Number > maxNumber {
		faults.Add(fault.New(fault.Invalid, fault.CodeOutOfRange, "A version is a whole number from 1 on; give another one.").At("version"))
	}
	if in.Directory == "" {
		faults.Add(fault.New(fault.Invalid, fault.CodeRequired, "Name the directory of your home that the files lie in.").At("directory"))
	}
	if !in.Fields.Scenario.Given {
		faults.Add(fault.New(fault.Invalid, fault.CodeRequired, "Say which scenario the model is for.").At("scenario"))
	}
	return append(faults, in.Fields.clean()...)
}

// cleanVisibility checks whom something is shared with.
func cleanVisibility(v access.Visibility) error {
	if v == access.Group || v == access.Global {
		return nil
	}
	return fault.New(fault.Invalid, fault.CodeInvalidValue, "Choose GROUP or GLOBAL; unshareModels takes a version back.").At("visibility")
}
