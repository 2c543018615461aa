package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdxlib"
)

// TestSBOM: the documents are valid, name each module once, and say what contains what.
func TestSBOM(t *testing.T) {
	r := fixture(t, nil)
	dir := built(t, r)
	namespaces := map[string]bool{}

	for _, kind := range []string{"", "image_"} {
		for _, p := range platforms {
			doc, err := spdxjson.Read(bytes.NewReader(contents(t, dir, r.sbomFile(name, kind, p))))
			if err != nil {
				t.Fatal(err)
			}

			if err := spdxlib.ValidateDocument(doc); err != nil {
				t.Error(err)
			}

			if namespaces[doc.DocumentNamespace] || doc.CreationInfo.Created != "2023-11-14T22:13:20Z" {
				t.Errorf("namespace %s, created %s", doc.DocumentNamespace, doc.CreationInfo.Created)
			}

			namespaces[doc.DocumentNamespace] = true

			checkPackages(t, doc, kind == "image_")
		}
	}
}

func checkPackages(t *testing.T, doc *spdx.Document, image bool) {
	t.Helper()

	purls := map[string]int{}
	programs := 0

	for _, pkg := range doc.Packages {
		for _, reference := range pkg.PackageExternalReferences {
			purls[reference.Locator]++
		}

		if pkg.PrimaryPackagePurpose == "APPLICATION" {
			programs++

			if len(pkg.PackageChecksums) != 1 || !strings.Contains(pkg.PackageSourceInfo, environment["COMMIT"]) {
				t.Errorf("%+v", pkg)
			}
		}
	}

	want := []string{"pkg:golang/stdlib@1.26.8", "pkg:golang/example.com/one@v1.0.0", "pkg:golang/example.com/fork@v2.0.1%2Bincompatible"}
	for _, purl := range want {
		if purls[purl] != 1 {
			t.Errorf("%s is there %d times: %v", purl, purls[purl], purls)
		}
	}

	roots := slices.ContainsFunc(doc.Packages, func(p *spdx.Package) bool { return p.PackageName == rootsModule })
	if programs != 2 || roots != image {
		t.Errorf("%d programs; authorities: %t", programs, roots)
	}

	// One that describes, two programs with three modules each, and the authorities.
	contained := map[string]int{}
	for _, relationship := range doc.Relationships {
		contained[relationship.Relationship]++
	}

	if contained["DESCRIBES"] != 1 || contained["DEPENDS_ON"] != 6 || image != (contained["CONTAINS"] == 3) {
		t.Errorf("%v", contained)
	}
}
