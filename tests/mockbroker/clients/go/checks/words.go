package checks

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// Commands of an adapter by name, as transactions/words.py describes them.
type Commands map[string]func(words []string) ([]string, error)

// Serve answers every line of stdin.
func (commands Commands) Serve() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		command, known := commands[words[0]]
		if !known {
			fmt.Println("error unknown", words[0])
			continue
		}
		result, err := command(words[1:])
		if err != nil {
			fmt.Println("error", strings.Join(strings.Fields(err.Error()), " "))
			continue
		}
		fmt.Println(strings.Join(append([]string{"ok"}, result...), " "))
	}
}
