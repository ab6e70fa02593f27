// robfig.go - the times of robfig/cron for expressions.
//
//	robfig < CASES
//
// A line is the number of a case, an expression, a zone and the second after which times are asked for, with tabs between. The
// answer is the number and up to five times; or "refused" with the reason, or "hangs".
// SPDX-License-Identifier: MIT
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	count    = 5
	patience = 20 * time.Second // five times take microseconds
)

var parsers = map[bool]cron.Parser{
	false: cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor),
	true:  cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow),
}

func findTimes(text, zone, after string) string {
	schedule, err := parsers[len(strings.Fields(text)) == 6].Parse(text)
	if err != nil {
		return "refused: " + err.Error()
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return "refused: " + err.Error()
	}
	second, err := strconv.ParseInt(after, 10, 64)
	if err != nil {
		return "refused: " + err.Error()
	}
	var times []string
	at := time.Unix(second, 0).In(location)
	for len(times) < count {
		at = schedule.Next(at)
		if at.IsZero() {
			break
		}
		times = append(times, strconv.FormatInt(at.Unix(), 10))
	}
	return strings.Join(times, ",")
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Split(lines.Text(), "\t")
		answer := make(chan string, 1)
		go func() { answer <- findTimes(words[1], words[2], words[3]) }()
		select {
		case times := <-answer:
			fmt.Printf("%s\t%s\n", words[0], times)
		case <-time.After(patience):
			fmt.Printf("%s\thangs\n", words[0])
		}
	}
}
