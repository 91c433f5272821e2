package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// lastRule is the highest number of each area of the platform's rules: every
// number from 01 on exists. Rules are cited by id in names of tests, comments
// and documents.
var lastRule = map[string]int{
	"TEN": 11, "RES": 12, "STO": 8, "DEV": 19, "VIS": 1, "JOB": 23, "ALG": 12, "MDL": 11, "WFL": 8,
	"APR": 5, "OPS": 3, "AUD": 8, "LIV": 4, "MET": 6, "NTF": 1, "OPR": 3, "GEN": 8,
}

var rulePattern = regexp.MustCompile(`\b(TEN|RES|STO|DEV|VIS|JOB|ALG|MDL|WFL|APR|OPS|AUD|LIV|MET|NTF|OPR|GEN)-(\d+)\b`)

func checkRules(r repo) ([]finding, error) {
	var found []finding
	for _, file := range r.files {
		if !hasSuffix(file, ".go", ".md", ".graphqls") || strings.HasPrefix(file, "tools/check/") {
			continue
		}
		text, err := r.read(file)
		if err != nil {
			return nil, err
		}
		if generated(file, text) {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			for _, m := range rulePattern.FindAllStringSubmatch(line, -1) {
				n, err := strconv.Atoi(m[2])
				switch {
				case err != nil || n < 1 || n > lastRule[m[1]]:
					found = append(found, finding{file, i + 1, m[0] + " is no rule: " +
						fmt.Sprintf("%s has 01 to %02d", m[1], lastRule[m[1]])})
				case len(m[2]) != 2:
					found = append(found, finding{file, i + 1, fmt.Sprintf("%s is written %s-%02d", m[0], m[1], n)})
				}
			}
		}
	}
	return found, nil
}
