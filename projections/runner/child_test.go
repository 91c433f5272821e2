package runner_test

const childEnv = "TALLYARD_TEST_PROJECTOR"

func runChild() int { return 1 }
