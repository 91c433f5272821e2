package embedded

func runChild(string) int { return 0 }
