package blackbox_test

import (
	"slices"
	"strings"
	"testing"
)

// deed is how the audit's test lets one mutation change something and be
// refused.
type deed struct {
	done, refused func(w *audited) vars
	// subject is the kind of thing that the line is about.
	subject string
}

// audited is a world with one person who does everything, so that their lines
// tell what was recorded.
type audited struct {
	*world
	boss               client
	bossID             string
	algorithm, version string
	published, failed  string // versions; failed has an operation to retry
	token, victim      string
}

var deeds = map[string]deed{
	"setUserQuota": {
		func(w *audited) vars { return vars{"userId": w.peerID, "cpuMillis": "4000", "reason": "test"} },
		func(w *audited) vars { return vars{"userId": w.peerID, "cpuMillis": "-1", "reason": "test"} }, "user",
	},

	"transferOwnership": {
		func(w *audited) vars {
			name := unique("aud")
			w.peer.do("createAlgorithm", w.command(name))
			return vars{"fromUserId": w.peerID, "toUserId": w.bossID, "reason": "test"}
		},
		func(w *audited) vars { return vars{"fromUserId": w.peerID, "toUserId": w.peerID, "reason": "test"} }, "algorithm",
	},
	"removeUser": {
		func(w *audited) vars {
			_, id := w.person("removed", "MEMBER")
			return vars{"userId": id, "reason": "test"}
		},
		func(w *audited) vars { return vars{"userId": w.bossID, "reason": "test"} }, "user",
	},
	"closeProject": {
		func(w *audited) vars {
			return vars{"id": w.boss.do("createProject", vars{"name": unique("aud")}).str("project.id"), "reason": "test"}
		},
		func(w *audited) vars { return vars{"id": w.project, "reason": "test"} }, "project",
	},

	"createTenant": {
		func(*audited) vars {
			return vars{"name": unique("aud"), "admin": vars{"loginName": "b", "displayName": "B"}}
		},
		func(*audited) vars { return vars{"name": "acme", "admin": vars{"loginName": "b", "displayName": "B"}} }, "tenant",
	},
	"updateTenant": {
		func(w *audited) vars {
			in := vars{"name": unique("aud"), "admin": vars{"loginName": "b", "displayName": "B"}}
			return vars{"id": w.boss.do("createTenant", in).str("tenant.id"), "name": unique("aud")}
		},
		func(w *audited) vars {
			return vars{"id": w.boss.ask(`{ me { tenant { id } } }`, nil).str("me.tenant.id"), "name": "a b"}
		}, "tenant",
	},
	"updateProject": {
		func(w *audited) vars { return vars{"id": w.project, "description": unique("aud")} },
		func(w *audited) vars { return vars{"id": w.project, "name": nil} }, "project",
	},
	"grantPermission": {
		func(w *audited) vars {
			return vars{"userId": w.victim, "permission": "PUBLISH_MODELS", "reason": "test"}
		},
		func(*audited) vars { return vars{"userId": "none", "permission": "PUBLISH_MODELS", "reason": "test"} }, "user",
	},
	"revokePermission": {
		func(w *audited) vars {
			return vars{"userId": w.victim, "permission": "PUBLISH_MODELS", "reason": "test"}
		},
		func(w *audited) vars { return vars{"userId": w.victim, "permission": "PUBLISH_MODELS", "reason": ""} }, "user",
	},
	"setBusinessScope": {
		func(w *audited) vars { return vars{"userId": w.victim, "businessScope": "TRAINING", "reason": "test"} },
		func(w *audited) vars { return vars{"userId": w.victim, "businessScope": "TRAINING", "reason": ""} }, "user",
	},
	"addProjectMember": {
		func(w *audited) vars { return vars{"userId": w.outsideID, "projectId": w.project, "reason": "test"} },
		func(w *audited) vars {
			return vars{"userId": w.peerID, "projectId": w.project, "role": "PROJECT_ADMIN", "reason": "test"}
		}, "user",
	},
	"changeProjectRole": {
		func(w *audited) vars {
			return vars{"userId": w.peerID, "projectId": w.project, "role": "PROJECT_ADMIN", "reason": "test"}
		},
		func(w *audited) vars {
			return vars{"userId": w.victim, "projectId": w.project, "role": "MEMBER", "reason": "test"}
		}, "user",
	},
	"removeProjectMember": {
		func(w *audited) vars { return vars{"userId": w.outsideID, "projectId": w.project, "reason": "test"} },
		func(w *audited) vars { return vars{"userId": w.outsideID, "projectId": w.project, "reason": ""} }, "user",
	},
	"erasePersonalData": {
		func(w *audited) vars {
			_, id := w.person("erased", "")
			return vars{"userId": id, "confirm": true, "reason": "test"}
		},
		func(w *audited) vars { return vars{"userId": w.victim, "confirm": false, "reason": "test"} }, "user",
	},
	"updateSettings": {
		func(w *audited) vars { return vars{"id": w.project, "modelApprovalRequired": true, "reason": "test"} },
		func(w *audited) vars { return vars{"id": w.project, "approvalExpiryDays": 3, "reason": "test"} }, "setting",
	},

	"createAlgorithm": {func(w *audited) vars { return w.command(unique("aud")) }, func(w *audited) vars { return w.command("no name") }, "algorithm"},
	"createAlgorithmVersion": {
		func(w *audited) vars { return w.next(unique("n")) }, func(w *audited) vars { return w.next("v1") }, "algorithmVersion",
	},
	"updateAlgorithmVersion": {
		func(w *audited) vars { return vars{"id": w.version, "description": "edited"} },
		func(w *audited) vars { return vars{"id": w.version, "expectedVersion": 99} }, "algorithmVersion",
	},
	"publishAlgorithmVersion": {
		func(w *audited) vars { return vars{"id": w.version, "visibility": "GROUP"} },
		func(w *audited) vars { return vars{"id": w.published, "visibility": "GROUP"} }, "algorithmVersion",
	},
	"deleteAlgorithmVersion": {
		func(w *audited) vars { return vars{"id": w.added()} },
		func(w *audited) vars { return vars{"id": w.published, "expectedVersion": 99} }, "algorithmVersion",
	},
	"deleteAlgorithmVersions": {
		func(w *audited) vars { return vars{"ids": []string{w.added()}} },
		func(w *audited) vars { return vars{"ids": []string{w.published}} }, "algorithmVersion",
	},
	"favoriteAlgorithm":   {func(w *audited) vars { return vars{"id": w.algorithm} }, func(*audited) vars { return vars{"id": "none"} }, ""},
	"unfavoriteAlgorithm": {func(w *audited) vars { return vars{"id": w.algorithm} }, func(*audited) vars { return vars{"id": "none"} }, ""},
	"importModel": {
		func(w *audited) vars { return w.modelOf(unique("aud"), 1) },
		func(w *audited) vars { return with(w.modelOf(unique("aud"), 1), vars{"directory": "nothing"}) }, "model",
	},
	"updateModelVersion": {
		func(w *audited) vars { return vars{"id": w.imported(""), "description": "edited"} },
		func(w *audited) vars { return vars{"id": w.imported(""), "expectedVersion": 99} }, "modelVersion",
	},
	"shareModels": {
		func(w *audited) vars { return vars{"ids": []string{w.imported("")}, "visibility": "GROUP"} },
		func(w *audited) vars { return vars{"ids": []string{w.imported("")}, "visibility": "PRIVATE"} }, "modelVersion",
	},
	"unshareModels": {
		func(w *audited) vars { return vars{"ids": []string{w.imported("GROUP")}} },
		func(*audited) vars { return vars{"ids": []string{"none"}} }, "modelVersion",
	},
	"deleteModels": {
		func(w *audited) vars { return vars{"ids": []string{w.imported("")}} },
		func(w *audited) vars { return vars{"ids": []string{w.usedModel()}} }, "modelVersion",
	},
	"approveRequest":  {func(w *audited) vars { return w.request(w.peer) }, func(w *audited) vars { return w.request(w.boss) }, "approval"},
	"rejectRequest":   {func(w *audited) vars { return w.request(w.peer) }, func(w *audited) vars { return w.request(w.boss) }, "approval"},
	"withdrawRequest": {func(w *audited) vars { return vars{"id": w.request(w.boss)["id"]} }, func(w *audited) vars { return vars{"id": w.request(w.peer)["id"]} }, "approval"},
	"retryOperation": {
		func(w *audited) vars { return vars{"id": w.boss.operationOf(w.failed).str("id")} },
		func(w *audited) vars { return vars{"id": w.ended()} }, "algorithmVersion",
	},
	"cancelOperation": {
		func(w *audited) vars { return vars{"id": w.queued()} },
		func(w *audited) vars { return vars{"id": w.ended()} }, "operation",
	},
	"dismissOperations": {
		func(w *audited) vars { return vars{"ids": []string{w.ended()}} },
		func(*audited) vars { return vars{"ids": []string{"none"}} }, "operation",
	},
	"createDirectory": {func(*audited) vars { return vars{"path": "dir"} }, func(*audited) vars { return vars{"path": "../dir"} }, "space"},
	"deleteFiles":     {func(*audited) vars { return vars{"paths": []string{"dir"}} }, func(*audited) vars { return vars{"paths": []string{"../dir"}} }, "space"},
	"registerDataSet": {
		func(w *audited) vars {
			return vars{"projectId": w.project, "name": unique("aud"), "directory": "resnet"}
		},
		func(w *audited) vars { return vars{"projectId": w.project, "name": "", "directory": "resnet"} }, "dataset",
	},
	"updateDataSet": {
		func(w *audited) vars { return vars{"id": w.newDataSet("GROUP"), "description": unique("d")} },
		func(w *audited) vars { return vars{"id": w.newDataSet("GROUP"), "name": nil} }, "dataset",
	},
	"deleteDataSet": {
		func(w *audited) vars { return vars{"id": w.newDataSet("GROUP")} },
		func(w *audited) vars { return vars{"id": w.newDataSet("GROUP"), "expectedVersion": 99} }, "dataset",
	},
	"cacheDataSet": {
		func(w *audited) vars { return vars{"id": w.newDataSet("GROUP")} }, func(*audited) vars { return vars{"id": "none"} }, "dataset",
	},
	"refreshDataSet": {
		func(w *audited) vars { return vars{"id": w.newDataSet("GROUP")} }, func(*audited) vars { return vars{"id": "none"} }, "dataset",
	},
	"unzipDataSet": {
		func(w *audited) vars { return vars{"id": w.cachedDataSet()} },
		func(w *audited) vars { return vars{"id": w.newDataSet("GROUP")} }, "dataset",
	},
	"registerImage": {
		func(*audited) vars { return vars{"kind": "EXTERNAL", "name": unique("aud"), "reference": "x"} },
		func(*audited) vars { return vars{"kind": "PRIVATE", "name": unique("aud"), "reference": "x"} }, "image",
	},
	"deleteImage": {
		func(w *audited) vars { return vars{"id": w.newImage()} },
		func(w *audited) vars { return vars{"id": w.newImage(), "expectedVersion": 99} }, "image",
	},
	"setStorageQuota": {
		func(w *audited) vars {
			return vars{"spaceId": w.sharedSpace("PROJECT"), "quotaBytes": "99999999999", "reason": "test"}
		},
		func(w *audited) vars {
			return vars{"spaceId": w.sharedSpace("PROJECT"), "quotaBytes": "-1", "reason": "test"}
		}, "space",
	},
	"createProject": {func(*audited) vars { return vars{"name": unique("aud")} }, func(*audited) vars { return vars{"name": "vision"} }, "project"},
	"createUser": {
		func(*audited) vars { return vars{"loginName": unique("aud"), "displayName": "Aud"} },
		func(*audited) vars { return vars{"loginName": "alice", "displayName": "Aud"} }, "user",
	},
	"grantRole": {
		func(w *audited) vars { return vars{"userId": w.victim, "role": "AUDITOR", "reason": "test"} },
		func(w *audited) vars { return vars{"userId": w.victim, "role": "MEMBER", "reason": "test"} }, "user",
	},
	"revokeRole": {
		func(w *audited) vars { return vars{"userId": w.victim, "role": "AUDITOR", "reason": "test"} },
		func(w *audited) vars { return vars{"userId": w.victim, "role": "MEMBER", "reason": "test"} }, "user",
	},
	"suspendUser":   {func(w *audited) vars { return vars{"userId": w.victim, "reason": "test"} }, func(w *audited) vars { return vars{"userId": w.victim, "reason": ""} }, "user"},
	"reinstateUser": {func(w *audited) vars { return vars{"userId": w.victim, "reason": "test"} }, func(w *audited) vars { return vars{"userId": w.victim, "reason": ""} }, "user"},
	"createApiToken": {
		func(*audited) vars { return vars{"expiresAt": soon()} },
		func(*audited) vars { return vars{"expiresAt": "2007-01-01T00:00:00Z"} }, "user",
	},
	"revokeApiToken": {func(w *audited) vars { return vars{"tokenId": w.token} }, func(*audited) vars { return vars{"tokenId": "none"} }, "user"},
}

func (w *audited) next(label string) vars {
	return vars{"algorithmId": w.algorithm, "label": label, "image": vars{"reference": "x"}, "source": vars{"command": "x"}}
}

func (w *audited) added() string {
	return w.boss.do("createAlgorithmVersion", w.next(unique("n"))).str("algorithmVersion.id")
}

// queued makes an operation that can still be cancelled: more are begun at once
// than are worked on.
func (w *audited) queued() string {
	w.t.Helper()
	w.boss.upload("bulk/train.py", script)
	w.boss.upload("bulk/blob", strings.Repeat("x", 4<<20))
	var versions []string
	for range 12 {
		in := with(w.next(unique("n")), vars{"source": vars{"script": vars{"directory": "bulk", "script": "train.py"}}})
		versions = append(versions, w.boss.do("createAlgorithmVersion", in).str("algorithmVersion.id"))
	}
	last := versions[len(versions)-1]
	live := w.boss.subscribe(`subscription($id: ID!) { operationEvents(filter: {subjectId: $id}) { operation { id } } }`, vars{"id": last})
	for _, v := range versions {
		w.boss.do("publishAlgorithmVersion", vars{"id": v, "visibility": "PRIVATE"})
	}
	items := live.until("the operation", func(v value) bool { return v.str("operation.id") != "" })
	return items[len(items)-1].str("operation.id")
}

// request is somebody's request for an approval, with a reason to decide so.
func (w *audited) request(who client) vars {
	w.t.Helper()
	_, id := w.asked(who)
	return vars{"id": id, "reason": "test"}
}

// ended gives an operation that succeeded.
func (w *audited) ended() string {
	w.t.Helper()
	w.boss.reaches(w.version, "PUBLISHED")
	return w.boss.operationOf(w.version).str("id")
}

func newAudited(t *testing.T) *audited {
	t.Helper()
	w := &audited{world: newWorld(t)}
	w.boss, w.bossID = w.person("boss", "TENANT_ADMIN")
	w.grant(w.bossID, "MEMBER")
	as(t, "oscar").do("grantRole", vars{"userId": w.bossID, "role": "OPERATOR", "reason": "test"})
	_, w.victim = w.person("victim", "")
	w.boss.upload("resnet/train.py", script)
	w.owner = w.boss
	w.algorithm, w.version = w.create(w.input(unique("aud")))
	w.published, w.failed = w.added(), w.added()
	w.publish(w.published, "GROUP")
	w.boss.do("updateAlgorithmVersion", vars{"id": w.failed, "source": vars{"script": vars{"directory": "resnet", "script": "train.py"}}})
	w.boss.remove("resnet")
	w.boss.do("publishAlgorithmVersion", vars{"id": w.failed, "visibility": "GROUP"})
	w.boss.reaches(w.failed, "PUBLISH_FAILED")
	w.boss.upload("resnet/train.py", script)
	w.boss.settled()
	w.token = w.boss.do("createApiToken", vars{"expiresAt": soon()}).str("tokenId")
	return w
}

const auditLines = `query($f: AuditFilter) { auditEntries(filter: $f, first: 100) { totalCount nodes { id action outcome reason address userAgent requestId commandId
	actor { user { id } } subject { kind id } project { id } refusals { code message field } changes { field from to } events position } } }`

// TestEveryMutationIsRecorded lets each mutation of the schema change something
// and be refused once. A mutation without a case fails.
func TestEveryMutationIsRecorded(t *testing.T) {
	w := newAudited(t)
	mutations := w.boss.ask(`{ __schema { mutationType { fields { name } } } }`, nil).strs("__schema.mutationType.fields", "name")
	order := func(a, b string) int { return slices.Index(deedOrder, a) - slices.Index(deedOrder, b) }
	slices.SortStableFunc(mutations, order)
	for _, m := range mutations {
		t.Run("AUD-01_"+m, func(t *testing.T) {
			d, ok := deeds[m]
			if !ok {
				t.Fatal("this mutation has no case")
			}
			w.t, w.boss.t = t, t
			for outcome, input := range map[string]func(*audited) vars{"DONE": d.done, "REFUSED": d.refused} {
				before := len(w.lines(m, outcome))
				got := w.boss.attempt(m, input(w))
				// An operation may end before it is cancelled.
				for try := 0; m == "cancelOperation" && outcome == "DONE" && got.str("userErrors.0.code") == "INVALID_STATE" && try < 5; try++ {
					got = w.boss.attempt(m, input(w))
				}
				bad := len(got.list("userErrors")) > 0 || got.at("results.0.userErrors.0").v != nil
				if bad != (outcome == "REFUSED") {
					t.Errorf("%s: the answer is %s", outcome, got)
				}
				lines := w.lines(m, outcome)
				if len(lines) <= before {
					t.Errorf("%s: no line; the answer was %s", outcome, got)
					continue
				}
				w.checkLine(t, d, lines[0], outcome)
			}
		})
	}
}

// deedOrder: what undoes something comes after it.
var deedOrder = []string{"publishAlgorithmVersion", "revokeRole", "revokePermission", "removeProjectMember", "reinstateUser", "unfavoriteAlgorithm", "deleteFiles", "retryOperation", "cancelOperation", "dismissOperations"}

// lines are the lines of the boss with an action and outcome, newest first.
func (w *audited) lines(action, outcome string) []value {
	w.t.Helper()
	client{w.t, w.p, "dev-admin"}.settled()
	f := vars{"actorId": w.bossID, "actions": []string{action}, "outcomes": []string{outcome}}
	lines := as(w.t, "audra").ask(auditLines, vars{"f": f}).list("auditEntries.nodes")
	if strings.HasSuffix(action, "Tenant") { // what was done to tenants is the platform's
		lines = append(lines, as(w.t, "oscar").ask(auditLines, vars{"f": with(f, vars{"platform": true})}).list("auditEntries.nodes")...)
	}
	return lines
}

func (w *audited) checkLine(t *testing.T, d deed, line value, outcome string) {
	t.Helper()
	if line.str("actor.user.id") != w.bossID || !strings.HasPrefix(line.str("address"), "127.0.0.1") || line.str("userAgent") != "blackbox/1" ||
		line.str("requestId") == "" || line.str("commandId") == "" || line.str("position") == "" {
		t.Errorf("%s: %s", outcome, line)
	}
	if kind := line.str("subject.kind"); line.str("subject.id") != "" && line.str("project.id") != w.project &&
		(kind == "algorithm" || kind == "algorithmVersion" || kind == "model" || kind == "modelVersion" || kind == "operation") {
		t.Errorf("%s: not in the project of its subject: %s", outcome, line)
	}
	if outcome == "REFUSED" {
		if line.str("refusals.0.code") == "" || line.str("refusals.0.message") == "" {
			t.Errorf("the refusal is not told: %s", line)
		}
		return
	}
	if len(line.list("events")) == 0 || d.subject != "" && line.str("subject.kind") != d.subject {
		t.Errorf("%s", line)
	}
}
