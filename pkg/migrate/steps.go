package migrate

// stepTitles are the steps of Run, for people.
func stepTitles() []string {
	return []string{
		"check that nothing is refused and nothing is being deleted",
		"save everything that is changed or removed into the backup file",
		"stop the old operator, and wait until it has no Pod",
		"delete its webhook configurations, which would refuse the next changes",
		"set the old objects to let go, should the old operator ever run again (deletePolicy.orphan, deletionPolicy: Orphan)",
		"take its finalizers and owner references off",
		"check that nothing runs and nobody writes",
		"delete the custom resource definitions: from here on there is no undo",
		"wait for the API of this operator, which you install",
		"import the objects, clusters with changePolicy: Observe",
		"verify each plan, and take over the clusters whose plan is empty",
	}
}
