// Package lines is how a program is asked: one case per line in, one answer per line out, in order.
package lines

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// Main answers every line of standard input on standard output, and ends the program at the first
// case that it does not understand.
func Main[A any](answered func(line []byte) (A, error)) {
	if err := answerAll(answered); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func answerAll[A any](answered func(line []byte) (A, error)) error {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return nil
		}
		answer, err := answered(line)
		if err != nil {
			return fmt.Errorf("%w in case %s", err, line)
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
		// Whoever asks one case at a time waits for this answer before the next question.
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}
