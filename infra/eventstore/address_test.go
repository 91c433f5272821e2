package eventstore

import (
	"strings"
	"testing"
	"time"
)

// eventstore.md, Client facts: the connection string is validated by us.
func TestAddressIsRefused(t *testing.T) {
	for address, text := range map[string]string{
		"":                                       "missing",
		"http://host":                            "must begin",
		"unix:relative":                          "absolute",
		"unix:" + "/" + strings.Repeat("x", 107): "107",
		"unix:/s?tls=false":                      "no settings",
		"esdb://host?defaultDeadline=10s":        "whole number of milliseconds",
		"esdb://host?defaultDeadline=0":          "whole number of milliseconds",
		"esdb://host?defaultDeadline=1.5":        "whole number of milliseconds",
		"esdb://host?gossipTimeout=5s":           "whole number of seconds",
		"esdb://host?maxDiscoverAttempts=x":      "whole number of attempts",
		"esdb://host?keepAliveInterval=1000":     "at least 10000",
		"esdb://host?keepAliveTimeout=-2":        "or -1",
		"esdb://host?tls=no":                     "true or false",
		"esdb://host?tlsCAFile=":                 "not be empty",
		"esdb://host?nodePreference=best":        "leader, follower",
		"esdb://host?tsl=false":                  "unknown setting",
		"esdb://host?tls=false&TLS=true":         "twice",
		"esdb://host?tls=false&tls=true":         "twice",
		"esdb://host?%zz":                        "can't be parsed",
		"esdb://host:port":                       "can't be parsed",
		"esdb://user:secret@host?tls=false":      "credentials are never sent",
		"esdb://user:secret@host:x":              "can't be parsed",
		"esdb://user:secret@ho st":               "can't be parsed",
		"esdb://":                                "can't be parsed",
	} {
		_, err := parseAddress(address)
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the password: %v", address, err)
		}
	}
}

func TestAddressIsTaken(t *testing.T) {
	c, err := parseAddress("esdb://user:secret@a:1,b:2,c:3?defaultDeadline=2500&nodePreference=Leader&keepAliveInterval=-1")
	if err != nil || len(c.GossipSeeds) != 3 || *c.DefaultDeadline != 2500*time.Millisecond || c.Username != "user" || c.MaxDiscoverAttempts != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = parseAddress("esdb+discover://cluster:2113?tlsVerifyCert=false")
	if err != nil || !c.DnsDiscover || !c.SkipCertificateVerification {
		t.Errorf("%+v, %v", c, err)
	}
	for _, a := range []string{"unix:/run/x/s", "unix:///run/x/s"} {
		c, err = parseAddress(a)
		if err != nil || c.Address != "unix:/run/x/s" || !c.DisableTLS {
			t.Errorf("%+v, %v", c, err)
		}
	}
}
