// Package clock tells how much of the processor the calling thread has used.
//
// Both sides of a comparison are single-threaded searches, so on an idle machine this is the
// time that passes; on a busy one it is the time that would have passed.
package clock

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Measure returns what the work took of the processor.
func Measure(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := used()
	work()
	return used() - start
}

func used() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		panic(err)
	}
	return time.Duration(at.Nano())
}
