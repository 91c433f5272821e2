package main

import (
	"strings"
	"testing"
	"time"
)

func TestEventStoreRoomSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		room     eventStoreRoom
		external bool
		says     string // empty: taken
	}{
		"no limit":               {eventStoreRoom{scavengeEvery: scavengeDefault}, false, ""},
		"never scavenging":       {eventStoreRoom{}, true, ""},
		"a limit":                {eventStoreRoom{maxBytes: 1 << 30}, false, ""},
		"a limit for another":    {eventStoreRoom{maxBytes: 1 << 30}, true, "--eventstore"},
		"a limit that is little": {eventStoreRoom{maxBytes: 1}, false, "--eventstore-max-bytes 1"},
		"a negative limit":       {eventStoreRoom{maxBytes: -1}, false, "--eventstore-max-bytes -1"},
		"all the time":           {eventStoreRoom{scavengeEvery: time.Second}, false, "--eventstore-scavenge-every"},
		"a negative time":        {eventStoreRoom{scavengeEvery: -time.Hour}, false, "--eventstore-scavenge-every"},
	} {
		err := tc.room.check(tc.external)
		if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
