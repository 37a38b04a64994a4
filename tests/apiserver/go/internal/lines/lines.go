// Package lines is how a program is asked: one question per line in, one answer per line out.
package lines

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// The longest question is a document with all definitions of the server.
const bytesMax = 64 << 20

// Answer answers every line of standard input on standard output.
func Answer[A any](answered func(line []byte) A) {
	questions := bufio.NewScanner(os.Stdin)
	questions.Buffer(nil, bytesMax)
	answers := json.NewEncoder(os.Stdout)
	for questions.Scan() {
		if err := answers.Encode(answered(questions.Bytes())); err != nil {
			panic(err)
		}
	}
	if err := questions.Err(); err != nil {
		panic(err)
	}
}

// Answered is an object, or why there is none.
type Answered[O any] struct {
	Object O      `json:"object,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Refusable makes an answer of whatever the code that is asked ends with: an error or a panic.
func Refusable[O any](made func(line []byte) (O, error)) func(line []byte) Answered[O] {
	return func(line []byte) (answer Answered[O]) {
		defer func() {
			if panicked := recover(); panicked != nil {
				answer = Answered[O]{Error: fmt.Sprintf("panic: %v", panicked)}
			}
		}()
		object, err := made(line)
		if err != nil {
			return Answered[O]{Error: err.Error()}
		}
		return Answered[O]{Object: object}
	}
}
